// Package ts_test packs the TypeScript client and the adapters over it, installs
// them as their users do, and drives a running server with them: in Node.js, in a
// page, in a worker, and in the chats below examples/.
package ts_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// timeout is how long the tests of Node.js, and those of the page, may take.
const timeout = 5 * time.Minute

// most is how many bytes the client may have, gzipped.
const most = 9 << 10

func TestClient(t *testing.T) {
	t.Parallel()
	need(t, "npm")
	folder := install(t)
	t.Run("size", func(t *testing.T) { checkSize(t, filepath.Join(folder, "node_modules/@coppice-chat/client/dist")) })
	base, keys := serve(t)
	t.Run("node", func(t *testing.T) {
		tests := check.Must(filepath.Abs("test"))(t)
		check.NoError(t, os.CopyFS(filepath.Join(folder, "test"), os.DirFS(tests)))
		command(t, folder, []string{"COPPICE_URL=" + base, "COPPICE_KEYS=" + strings.Join(keys[1:len(keys)-2], ",")},
			"node", "--test", "--test-reporter=spec", "test/client.test.mjs", "test/events.test.mjs")
	})
	t.Run("browser", func(t *testing.T) {
		browse(t, filepath.Join(folder, "node_modules/@coppice-chat/client/dist"), base, keys[0])
	})
	for i, name := range []string{"assistant-ui", "ai-sdk"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			browser := need(t, browsers...)
			if name == "ai-sdk" {
				check.Long(t) // it does what the first does
			}
			pack(t, filepath.Join("..", name), folder)
			built := example(t, name, folder)
			if name == "assistant-ui" {
				command(t, folder, []string{"THREADS=" + filepath.Join(built, "node_modules/@coppice-chat/assistant-ui/dist/store.js")},
					"node", "--test", "--test-reporter=spec", "test/threads.test.mjs")
			}
			chat(t, browser, name, built, base, keys[len(keys)-1-i])
		})
	}
}

// browsers are the programs that can be driven, the one without windows first: it
// takes half of the processor.
var browsers = []string{"chromium-headless-shell", "chromium"}

// need gives the first of the programs that is installed. Without any, the test is
// skipped, unless CI wants every client to run. A short run skips it.
func need(t *testing.T, programs ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("no client runs in a short run")
	}
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	why := strings.Join(programs, " or ") + " is missing"
	check.Need(t, os.Getenv("COPPICE_REQUIRE_CLIENTS") == "", "%v", why)
	t.Skip(why)
	return ""
}

func command(t *testing.T, folder string, env []string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(append(os.Environ(), "NO_COLOR=1"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// install builds and packs the client, and installs the package in an empty
// folder.
func install(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	pack(t, ".", folder)
	packed, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	check.Need(t, err == nil && len(packed) == 1, "%v, %v", packed, err)
	check.NoError(t, os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"private":true,"type":"module"}`), 0o600))
	command(t, folder, nil, "npm", "install", "--offline", packed[0], "--no-audit", "--no-fund", "--loglevel=error")
	return folder
}

// pack installs what a package is built with, unless that was done since its lock
// changed, and packs it.
func pack(t *testing.T, folder, into string) {
	t.Helper()
	lock := check.Must(os.Stat(filepath.Join(folder, "package-lock.json")))(t)
	if done, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json")); err != nil || done.ModTime().Before(lock.ModTime()) {
		command(t, folder, nil, "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
	}
	command(t, folder, nil, "npm", "pack", "--loglevel=error", "--pack-destination", into)
}

// checkSize holds the client's code, without its types, to what a page loads.
func checkSize(t *testing.T, dist string) {
	files, err := filepath.Glob(filepath.Join(dist, "*.js"))
	check.Need(t, err == nil && len(files) != 0, "%v, %v", files, err)
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for _, file := range files {
		content := check.Must(os.ReadFile(file))(t)
		check.Must(w.Write(content))(t)
	}
	check.NoError(t, w.Close())
	if out.Len() > most {
		t.Errorf("the client takes %d bytes gzipped, over %d", out.Len(), most)
	}
}

// said is what the model answers.
const said = "Those that were picked late, and lie cool, dry and apart from each other, keep until the spring."

// serve starts a Coppice, whose model is a fake, and makes keys of tenants that
// have nothing.
func serve(t *testing.T) (base string, keys []string) {
	t.Helper()
	fake := llmtest.NewServer(t)
	fake.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		switch last := string(req.Messages[len(req.Messages)-1]); {
		case strings.Contains(last, "hang"):
			return llmtest.HangMidway("This never ends.")
		case strings.Contains(last, `"fail"`):
			return llmtest.Fail(http.StatusBadRequest)
		}
		return llmtest.Answer(said)
	}))
	c := check.Must(app.Open(t.Context(), app.Config{
		Database: app.DatabaseConfig{URL: dbtest.URL(t)},
		Models:   app.Models{BaseURL: fake.URL(), APIKey: "fake", Replies: []string{"gpt-4o-mini"}},
	}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ctx) // it tells that a reply was cut off, which hangs
	})
	check.NoError(t, c.Start(t.Context()))
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	for i := range 22 {
		_, secret, err := c.Keys().Create(t.Context(), fmt.Sprintf("tenant-%d", i), "clients")
		check.NoError(t, err)
		keys = append(keys, secret)
	}
	return web.URL, keys
}

// talk sends a message and gives the answer, in a page and in a worker.
const talk = `
	const coppice = new Coppice({ apiKey: KEY })
	const { id } = await coppice.createConversation()
	let text = ''
	for await (const { event, data } of coppice.createReply(id, 'active', { message: { role: 'user', content: 'Which apples keep?' } }))
		if (event === 'reply.delta') text += data.content
	return text`

// browse runs the client in a page, and in a worker of it. The page, the client
// and the API have one origin.
func browse(t *testing.T, dist, base, key string) {
	browser := need(t, browsers...)
	script := strings.ReplaceAll(talk, "KEY", fmt.Sprintf("%q", key))
	mux := http.NewServeMux()
	mux.Handle("/client/", http.StripPrefix("/client/", http.FileServer(http.Dir(dist))))
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "import { Coppice } from '/client/index.js'\nconst talk = async () => {%s}\ntalk().then(postMessage, error => postMessage(String(error)))\n", script)
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html><title>A page</title>") })
	ctx := openPage(t, browser, mux, base, "/")
	for where, run := range map[string]string{
		"page":   "(async () => { const { Coppice } = await import('/client/index.js');" + script + "})()",
		"worker": "new Promise((done, fail) => { const w = new Worker('/worker.js', { type: 'module' }); w.onmessage = e => done(e.data); w.onerror = e => fail(e.message) })",
	} {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise))
		check.That(t, err == nil && got == said, "the %s gives %q, %v", where, got, err)
	}
}

// openPage opens a page of a site beside the API, as a proxy on the page's own host would
// have it, in a browser of its own.
func openPage(t *testing.T, browser string, site *http.ServeMux, base, path string) context.Context {
	t.Helper()
	address := check.Must(url.Parse(base))(t)
	site.Handle("/v1/", &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(address)
		r.Out.Host = r.In.Host
	}})
	web := httptest.NewServer(site)
	t.Cleanup(web.Close)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(timeout), chromedp.Flag("disable-quic", true))
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	check.NoError(t, chromedp.Do(ctx, chromedp.Navigate(web.URL+path)))
	return ctx
}
