package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

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

// do runs actions in the tab.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
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

// run runs an action that gives a value.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	check.Need(b.t, err == nil, "browser: %v", err)
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

// until waits until an expression is true in the page. The page looks at it by
// itself for a while, because each question from here costs the browser more than
// the look. A document that goes meanwhile is no failure.
func (b *tab) until(expression string, args ...any) {
	b.t.Helper()
	expression = script(expression, args)
	look := chromedp.Evaluate[bool](`(async () => {
		for (const end = performance.now() + 1000; performance.now() < end; await new Promise(later => setTimeout(later, 20))) if (await (`+expression+`)) return true
		return false
	})()`, chromedp.EvalAwaitPromise)
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	var err error
	for so := false; ctx.Err() == nil; time.Sleep(15 * time.Millisecond) {
		so, err = chromedp.Run(ctx, look)
		var thrown *chromedp.ExceptionError
		check.Need(b.t, !errors.As(err, &thrown), "%s: %v", expression, err)
		if so {
			return
		}
	}
	b.snapshot("failed")
	b.t.Fatalf("the page never got to: %s\n%v\nit shows: %.1500s", expression, err, eval[string](b, "document.body.innerText"))
}

// shows waits until a text is on the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(`document.body?.innerText.includes($1)`, text) // a document begins without a body
}

// hides waits until a text is not on the page.
func (b *tab) hides(text string) {
	b.t.Helper()
	b.until(`!document.body.innerText.includes($1)`, text)
}

// path is the page's address without the host.
func (b *tab) path() string {
	b.t.Helper()
	return eval[string](b, "location.pathname")
}
