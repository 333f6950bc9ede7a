package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// timeout is how long a test waits for the page to get somewhere before it
// fails. It is no measure of anything.
const timeout = 90 * time.Second

// startBrowser starts one browser for all tests of the binary.
var startBrowser = sync.OnceValues(func() (context.Context, error) {
	path, err := findBrowser()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "coppice-browser-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(timeout),
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"), // chromedp's own, and no process in reserve
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("site-per-process", true), // as with windows: the frame that draws diagrams is a process of its own
		// A mouse, which a headless browser doesn't think it has.
		chromedp.Flag("blink-settings", "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"),
		chromedp.Flag("hide-scrollbars", true), chromedp.WindowSize(1440, 900),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	closeBrowser = func() {
		cancel()
		stop()
		os.RemoveAll(profile)
	}
	return ctx, chromedp.Do(ctx)
})

// closeBrowser ends the browser, if there is one.
var closeBrowser = func() {}

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	closeBrowser()
	os.Exit(code)
}

// findBrowser prefers the browser that has no windows, which takes half of the
// processor.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no browser. Install one, for example by apt-get install chromium-headless-shell")
}

// A tab is a tab of the browser on a site. Its methods fail the test when the
// page doesn't get where it should.
type tab struct {
	t    testing.TB
	ctx  context.Context
	site *site
	look tabOptions

	mu     sync.Mutex
	errors []string                     // of scripts and of the security policy
	asked  map[network.RequestID]string // addresses of all requests but those that the policy stopped
}

// An option changes a tab before it opens.
type option func(*tabOptions)

type tabOptions struct {
	width, height int64
	dark, calm    bool
	alsoDark      bool
	touch         bool
	beside        *tab
}

func size(width, height int64) option {
	return func(o *tabOptions) { o.width, o.height = width, height }
}

func dark(o *tabOptions) { o.dark = true }

func touch(o *tabOptions) { o.touch = true }

// alsoDark has each view looked over in dark colours after the light ones.
func alsoDark(o *tabOptions) { o.alsoDark = true }

// beside opens the tab in the same window as another: they share storage.
func beside(other *tab) option { return func(o *tabOptions) { o.beside = other } }

// newTab opens a tab at a path of the site.
func newTab(t testing.TB, s *site, path string, options ...option) *tab {
	t.Helper()
	o := tabOptions{width: 1440, height: 900, calm: true}
	for _, change := range options {
		change(&o)
	}
	parent, err := startBrowser()
	if err != nil {
		check.Need(t, os.Getenv("COPPICE_REQUIRE_BROWSER") != "1", "%v", err)
		t.Skip(err)
	}
	var ctx context.Context
	var cancel context.CancelFunc
	if o.beside != nil {
		ctx, cancel = chromedp.NewContext(o.beside.ctx)
	} else {
		ctx, cancel = chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	}
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, site: s, look: o, asked: map[network.RequestID]string{}}
	if err := chromedp.Listen(ctx, b.listen); err != nil { // opens the tab
		t.Fatalf("browser: %v", err)
	}
	command(b, network.Enable, network.EnableParams{})
	command(b, log.Enable, cdp.Empty{})
	command(b, runtime.Enable, cdp.Empty{})
	b.emulate(o)
	t.Cleanup(b.sound)
	b.atStart(recordMarks)
	b.atStart(guardClicks)
	b.do(chromedp.Navigate(s.url + path))
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		b.errors = append(b.errors, what)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity {
			b.errors = append(b.errors, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.asked[e.RequestID] = e.Request.URL
	case *network.EventLoadingFailed:
		if e.BlockedReason == network.BlockedReasonCsp {
			delete(b.asked, e.RequestID)
		}
	}
}

// sound fails the test where a script failed, the policy was violated or
// anything but the site was asked for.
func (b *tab) sound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the page: %s", e)
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, b.site.url) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:"+b.site.url) {
			b.t.Errorf("the page asked for %s", url)
		}
	}
}
