package ts_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/internal/check"
)

// steps are what a user does with the example chats, in a page of theirs.
//
//go:embed test/chat.js
var steps string

// example installs an example with the packages, and builds it.
func example(t *testing.T, name, packed string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	source := filepath.Join("..", "..", "examples", name)
	for _, file := range []string{"package.json", "package-lock.json", "index.html", "chat.css", "main.tsx"} {
		content, err := os.ReadFile(filepath.Join(source, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), content, 0o600)
		}
		check.NoError(t, err)
	}
	var files []string
	for _, of := range []string{"client", name} {
		found, err := filepath.Glob(filepath.Join(packed, "coppice-chat-"+of+"-*.tgz"))
		check.Need(t, err == nil && len(found) == 1, "%v, %v", found, err)
		files = append(files, found[0])
	}
	quiet := []string{"--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"}
	command(t, folder, nil, "npm", append([]string{"ci"}, quiet...)...)
	command(t, folder, nil, "npm", append(append([]string{"install", "--no-save"}, quiet...), files...)...)
	command(t, folder, nil, "npm", "run", "--silent", "build")
	return folder
}

// chat uses an example in a browser. The page and the API have one origin.
func chat(t *testing.T, browser, name, folder, base, key string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(folder)))
	ctx := openPage(t, browser, mux, base, "/?key="+url.QueryEscape(key))
	for _, step := range strings.Fields("talk edit switchBack regenerate hang") {
		do(ctx, t, key, step)
	}
	check.NoError(t, chromedp.Do(ctx, chromedp.Reload()))
	for _, step := range strings.Fields("resume threads") {
		do(ctx, t, key, step)
	}
	if into := os.Getenv("COPPICE_SCREENSHOTS"); into != "" {
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(into, name+".png"), picture, 0o600)
		}
		check.That(t, err == nil, "%v", err)
	}
}

// do carries a step of test/chat.js out, which throws where the page doesn't get
// where it should.
func do(ctx context.Context, t *testing.T, key, step string) {
	t.Helper()
	script := fmt.Sprintf("(async () => { const KEY = %q, SAID = %q;\n%s\nreturn await %s() })()", key, said, steps, step)
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	check.Need(t, err == nil && got == "done", "%s: %q, %v", step, got, err)
}
