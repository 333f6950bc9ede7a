package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
)

// patience is how long a test waits for the page to get somewhere before it
// fails. It is no measure of anything.
const patience = 90 * time.Second

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
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("font-render-hinting", "none"),
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
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no browser. Install one, for example by apt-get install chromium")
}

// A tab is a tab of the browser on a site. Its methods fail the test when the
// page doesn't get where it should.
type tab struct {
	t    testing.TB
	ctx  context.Context
	site *site

	mu     sync.Mutex
	errors []string                     // of scripts and of the security policy
	asked  map[network.RequestID]string // addresses of all requests but those that the policy stopped
}

// An option changes a tab before it opens.
type option func(*tabOptions)

type tabOptions struct {
	width, height int64
	dark, calm    bool
	touch         bool
	beside        *tab
}

func size(width, height int64) option {
	return func(o *tabOptions) { o.width, o.height = width, height }
}
func dark(o *tabOptions)  { o.dark = true }
func touch(o *tabOptions) { o.touch = true }

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
		if os.Getenv("COPPICE_REQUIRE_BROWSER") == "1" {
			t.Fatal(err)
		}
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
	b := &tab{t: t, ctx: ctx, site: s, asked: map[network.RequestID]string{}}
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

// recordMarks notes which messages are marked as new or as the one that was
// looked for: the mark itself goes after a moment.
const recordMarks = `
	window.marked = new Set()
	new MutationObserver(() => {
		for (const m of document.querySelectorAll('.message.fresh, .message.sought')) {
			for (const mark of ['fresh', 'sought']) if (m.classList.contains(mark)) window.marked.add(mark + ' ' + m.dataset.id)
		}
	}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] })`

// marks waits until a message is marked as "fresh" or "sought", or was.
func (b *tab) marks(mark string, message uuid.UUID) {
	b.t.Helper()
	b.until(`window.marked.has($1)`, mark+" "+message.String())
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

// do runs actions in the tab.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// requests are the addresses that the page asked for.
func (b *tab) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.asked))
}

// eventually waits until something outside the page is so.
func (b *tab) eventually(what string, so func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(15 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never came: %s", what)
		}
	}
}

// run runs an action that gives a value.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return value
}

// command sends a command of the protocol to the tab.
func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	return run(b, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, c, params) })
}

// eval gives the value of an expression in the page.
func eval[T any](b *tab, expression string, args ...any) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](script(expression, args), chromedp.EvalAwaitPromise))
}

// atStart has documents that are opened from now on run a script first.
func (b *tab) atStart(source string, args ...any) {
	b.t.Helper()
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script(source, args)})
}

// script fills $1, $2, … of an expression with arguments, as JSON.
func script(expression string, args []any) string {
	for i := len(args) - 1; i >= 0; i-- {
		encoded, _ := json.Marshal(args[i])
		expression = strings.ReplaceAll(expression, fmt.Sprintf("$%d", i+1), string(encoded))
	}
	return expression
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string, args ...any) {
	b.t.Helper()
	expression = script(expression, args)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(15 * time.Millisecond) {
		if eval[bool](b, "Promise.resolve("+expression+").then(Boolean)") {
			return
		}
	}
	b.snapshot("failed")
	b.t.Fatalf("the page never got to: %s\nit shows: %.1500s", expression, eval[string](b, "document.body.innerText"))
}

// shows waits until a text is on the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes($1)`, text)
}

// hides waits until a text is not on the page.
func (b *tab) hides(text string) {
	b.t.Helper()
	b.until(`!document.body.innerText.includes($1)`, text)
}

// find is an expression for the first element in view with a selector and a
// text or name.
const find = `[...document.querySelectorAll($1)].find(e => e.checkVisibility() && (!$2 || (e.getAttribute('aria-label') ?? '').startsWith($2) || e.innerText.trim().startsWith($2)))`

// click clicks the middle of an element, by the mouse. A page that is still
// loading may move between the moment when the element is measured and the
// click. A click that would hit something else is kept from the page, and is
// made again.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	var struck string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(15 * time.Millisecond) {
		b.until(find, selector, text)
		p := eval[*[2]float64](b, `(e => {
			if (!e) return null
			e.scrollIntoViewIfNeeded?.()
			window.aim = e
			const r = e.getBoundingClientRect()
			return [r.x + r.width / 2, r.y + r.height / 2]
		})(`+find+`)`, selector, text)
		if p == nil {
			continue // gone since
		}
		b.clickAt(p[0], p[1])
		if struck = eval[string](b, `(s => (window.aim = window.struck = undefined, s ?? ''))(window.struck)`); struck == "" {
			return
		}
	}
	b.snapshot("failed")
	b.t.Fatalf("the click on %s %q would hit %s", selector, text, struck)
}

// guardClicks keeps clicks from the page that miss the element that is aimed
// at, and notes what they would have hit.
const guardClicks = `
	for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
		addEventListener(type, e => {
			if (!window.aim) return
			if (type === 'pointerdown' && !window.aim.contains(e.target)) window.struck = e.target.outerHTML?.slice(0, 200) ?? 'the document'
			if (window.struck) (e.stopImmediatePropagation(), e.preventDefault())
		}, { capture: true })
	}`

func (b *tab) clickAt(x, y float64) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y), chromedp.MouseClickXY(x, y))
}

// hover moves the mouse onto an element.
func (b *tab) hover(selector, text string) {
	b.t.Helper()
	b.until(find, selector, text)
	p := eval[[2]float64](b, `(e => { const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(`+find+`)`, selector, text)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, p[0], p[1]))
}

// keys presses keys, wherever the focus is. The names of package kb stand for
// keys that write nothing. A key press that the page takes for itself writes
// nothing either, as with a keyboard; chromedp's own events write all the same.
func (b *tab) keys(keys string, modifiers ...kb.Modifier) {
	b.t.Helper()
	for _, key := range keys {
		var down, up input.DispatchKeyEventParams
		for _, event := range kb.Encode(key) {
			for _, m := range modifiers {
				event.Modifiers |= int64(m)
			}
			switch event.Type {
			case kb.KeyUp:
				up = *event
			case kb.KeyChar:
				if len(modifiers) == 0 {
					down.Text, down.UnmodifiedText = event.Text, event.UnmodifiedText
				}
			default:
				down = *event
			}
		}
		command(b, input.DispatchKeyEvent, down)
		command(b, input.DispatchKeyEvent, up)
	}
}

// send types text into the composer and sends it.
func (b *tab) send(text string) {
	b.t.Helper()
	b.click(".composer textarea", "")
	b.keys(text)
	b.keys(kb.Enter)
	b.until(`document.querySelector('.composer textarea').value === ''`)
}

// showMessage scrolls to the message at a depth of the branch. Rows that weren't
// rendered yet have a height that is guessed, so it goes step by step.
func (b *tab) showMessage(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`new Promise(done => {
		const list = document.querySelector('.transcript')
		const found = document.querySelector($1)
		const top = found?.getBoundingClientRect().top
		const atTop = list.scrollTop < 1, atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 1
		if (found && (Math.abs(top - 200) < 2 || atTop && top < 200 || atEnd && top > 200)) return done(true)
		if (found) list.scrollTop += top - 200
		else {
			const shown = [...document.querySelectorAll('.message[aria-posinset]')]
			const first = $2 + 1 - shown.at(0)?.ariaPosInSet, last = $2 + 1 - shown.at(-1)?.ariaPosInSet
			if (first < 0) list.scrollTop += first * 136 + Math.min(0, shown.at(0).getBoundingClientRect().top + 600)
			else if (last > 0) list.scrollTop += last * 136 + Math.max(0, shown.at(-1).getBoundingClientRect().bottom - 600)
		}
		requestAnimationFrame(() => setTimeout(() => done(false), 60))
	})`, row(message), depth)
}

// scroll has a script move the transcript, and waits until the movement is over,
// for the page, too: that takes it a moment after the last step.
func (b *tab) scroll(script string, args ...any) {
	b.t.Helper()
	eval[any](b, `new Promise(done => {
		const list = document.querySelector('.transcript')
		let timer
		const wait = () => { clearTimeout(timer); timer = setTimeout(done, 300) }
		list.addEventListener('scroll', wait)
		`+script+`
		requestAnimationFrame(() => requestAnimationFrame(wait)) // by then, a step was told
	})`, args...)
}

// render scrolls until the message at a depth of the branch is on the page, in
// view or near it.
func (b *tab) render(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`(() => {
		if (document.querySelector($1)) return true
		const list = document.querySelector('.transcript')
		const shown = [...document.querySelectorAll('.message[aria-posinset]')]
		const first = shown.at(0)?.ariaPosInSet - 1
		list.scrollTop += $2 < first ? shown.at(0).getBoundingClientRect().top - 400 : shown.at(-1).getBoundingClientRect().bottom - 400
	})()`, row(message), depth)
}

// path is the page's address without the host.
func (b *tab) path() string {
	b.t.Helper()
	return eval[string](b, "location.pathname")
}
