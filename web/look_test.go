package web_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

// pictures are the views that the documentation shows.
var pictures = []string{"chat-light", "context-light", "map"}

// view takes the picture of a view of the page, and looks it over.
func (b *tab) view(name string) {
	b.t.Helper()
	b.inEachColour(name, func(name string, rules ...string) {
		b.t.Helper()
		b.inspect(name, rules...)
		b.snapshot(name)
		if *check.Update && slices.Contains(pictures, name) {
			b.picture(filepath.Join("..", "docs", "images", name+".png"))
		}
	})
}

// audit looks a view of the page over.
func (b *tab) audit(name string) {
	b.t.Helper()
	b.inEachColour(name, b.inspect)
}

// inEachColour looks at a view, and where the tab is alsoDark, once more in dark
// colours. Only rules about colours can find something else there.
func (b *tab) inEachColour(name string, look func(name string, rules ...string)) {
	b.t.Helper()
	look(name)
	if b.look.alsoDark {
		b.prefer(true, b.look.calm)
		look(strings.TrimSuffix(name, "-light")+"-dark", "color-contrast", "link-in-text-block")
		b.prefer(false, b.look.calm)
	}
}

// inspect lists what a reader would stumble over: menus away from their buttons and
// things that stick out of the window, and what axe-core finds by some rules, or by
// all of them: controls without names, text without contrast.
func (b *tab) inspect(view string, rules ...string) {
	b.t.Helper()
	eval[any](b, `Promise.all(document.getAnimations().map(a => a.finished.catch(() => {})))`)
	for _, finding := range eval[[]string](b, audit) {
		b.t.Errorf("%s: %s", view, finding)
	}
	b.axe(view, rules...)
}

const audit = `(() => {
	const found = []
	const shown = e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.getBoundingClientRect().width > 1
	const what = e => e.tagName.toLowerCase() + '.' + e.className + ' ' + JSON.stringify(e.innerText?.slice(0, 30))
	for (const menu of document.querySelectorAll('[role=menu]')) {
		const m = menu.getBoundingClientRect(), b = menu.parentElement.querySelector('button').getBoundingClientRect()
		if (m.top - b.bottom > 8 || b.top - m.bottom > 8 || m.left > b.right || m.right < b.left) found.push('is not at its button: ' + what(menu))
		if (m.top < 0 || m.bottom > innerHeight) found.push('is not in the window: ' + what(menu))
	}
	if (document.documentElement.scrollWidth > innerWidth) found.push('is wider than the window')
	for (const e of document.querySelectorAll('button, input, textarea, h1')) {
		const r = e.getBoundingClientRect()
		if (shown(e) && !e.closest('.transcript, .list, .context, .code, .table') && (r.left < -1 || r.right > innerWidth + 1)) found.push('sticks out: ' + what(e))
	}
	return [...new Set(found)]
})()`

// showcase is a conversation with something of everything, and others beside it.
func (s *site) showcase() (id, head uuid.UUID) {
	s.t.Helper()
	for _, title := range []string{"Trip to Oslo", "Parser bug in the lexer", "Names for a cat", "Sourdough that rises", "Why the test is flaky", "A letter to the council"} {
		s.conversation(title, "Hello?", "Hello.")
	}
	id, _ = s.conversation("A rate limiter in Go")
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"settings":{"max_context_tokens":8000,"reserved_tokens":1000,"summary_target_tokens":300,"min_fold_tokens":100,"keep_ratio":0.2,"compaction":"manual"}}`, nil)
	parent := s.append(id, uuid.Nil, "system", "You help with Go. Answer briefly, and show code where it says more than words.")
	say := func(role, text string) uuid.UUID {
		parent = s.append(id, parent, role, text)
		return parent
	}
	for i := range 22 {
		say("user", fmt.Sprintf("Requirement %d: clients of tier %d may send %d requests a minute, and bursts of %d. Remember the file limits/tier%d.yaml.", i+1, i%4, 60*(i+1), 10*(i+1), i%4))
		say("assistant", fmt.Sprintf("Noted: tier %d gets %d requests a minute with bursts of %d, from limits/tier%d.yaml. The limiter reads it when the program starts, and a change takes effect with the next deployment.", i%4, 60*(i+1), 10*(i+1), i%4))
	}
	question := say("user", "Write the token bucket. It must not need a goroutine per client.")
	say("assistant", "One with a timer:\n\n```go\ntype Bucket struct{ tokens chan struct{} }\n```\n\nIt needs a goroutine, though.")
	parent = question
	answer := say("assistant", strings.Join([]string{
		"A bucket needs no timer: it works out what has flowed in since it was last asked.",
		"```go\n// A Bucket allows so many events a second, and bursts of so many.\ntype Bucket struct {\n\tmu     sync.Mutex\n\trate   float64 // tokens a second\n\tburst  float64\n\ttokens float64\n\tlast   time.Time\n}\n\n// Allow takes a token, if there is one.\nfunc (b *Bucket) Allow(now time.Time) bool {\n\tb.mu.Lock()\n\tdefer b.mu.Unlock()\n\tb.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)\n\tb.last = now\n\tif b.tokens < 1 {\n\t\treturn false\n\t}\n\tb.tokens--\n\treturn true\n}\n```",
		"Three things to know:\n\n1. `now` is an argument, so that a test needs no clock.\n2. A bucket costs **56 bytes**; a million clients are 56 MB.\n3. Clients that were silent for `burst / rate` seconds can be forgotten.",
	}, "\n\n"))
	say("user", "And in front of it, per client?")
	say("assistant", "A map of buckets behind one lock, swept now and then.")
	other := s.append(id, answer, "user", "How would I test it?")
	s.append(id, other, "assistant", "With a fixed time that the test moves on.")
	parent = other
	head = say("assistant", "Give it times by hand:\n\n| step | time | want |\n|:--|--:|:--|\n| first | 0 s | allowed |\n| burst is used up | 0 s | refused |\n| one token flowed in | 1 s | allowed |\n\nNo sleeping, and so nothing that fails now and then.")
	s.call("PATCH", "/v1/conversations/"+id.String(), fmt.Sprintf(`{"head_id":%q}`, head), nil)
	return id, head
}

func TestLook(t *testing.T) {
	t.Parallel()
	check.Long(t)
	s := newSite(t)
	id, head := s.showcase()
	path := fmt.Sprintf("/c/%s/%s", id, head)
	s.call("POST", fmt.Sprintf("/v1/conversations/%s/branches/active/compactions", id), `{}`, nil)

	b := newTab(t, s, path, alsoDark)
	b.until(`document.querySelector('.map-item') && document.querySelector('.budget-button')`)
	b.view("chat-light")
	x, y := b.spot(head)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	b.until(`document.querySelector('.map-preview')`)
	b.view("map")
	b.hover(".budget-button", "")
	b.until(`document.querySelector('.budget .legend')`)
	b.audit("budget")
	b.hover(".title", "")

	// The fold, open, and the context beside it.
	s.context(id)
	b.click("[role=tab]", "Context")
	b.until(`document.querySelectorAll('.piece').length > 5`)
	eval[any](b, `{ const s = document.querySelector('.transcript'); s.scrollTop = 0 }`)
	b.until(`document.querySelectorAll('.message.folded').length > 2`)
	b.audit("folded")
	b.toFold()
	b.click(".fold-rule", "")
	b.until(`document.querySelector('.summary-card .prose')`)
	b.toFold()
	b.view("context-light")

	b.click(".branch-head .menu button", "Conversation")
	b.audit("menu")
	b.keys(kb.Escape)
	b.keys("?")
	b.until(`document.querySelector('dialog')`)
	b.view("keys-light")
	b.keys(kb.Escape)
	b.keys("k", chromedp.ModifierCtrl)
	b.keys("bucket")
	b.until(`document.querySelectorAll('.hit').length > 1`)
	b.view("search-light")

	b = newTab(t, s, path, size(360, 740), touch)
	b.until(`document.querySelector('.message.last') && matchMedia('(max-width: 719px)').matches && !document.querySelector('.side')`)
	b.view("narrow")
	b.click(".branch-head button", "Map")
	b.until(`document.querySelector('.map-item')`)
	b.view("narrow-map")
	b.keys(kb.Escape)
	b.until(`!document.querySelector('.side')`)
	b.click(".branch-head button", "Conversations")
	b.until(`document.querySelector('.sidebar.open')`)
	b.view("narrow-list")
}

// toFold brings the fold marker near the top.
func (b *tab) toFold() {
	b.t.Helper()
	b.until(`new Promise(done => {
		const list = document.querySelector('.transcript'), fold = document.querySelector('.fold')
		const top = fold?.getBoundingClientRect().top
		if (fold && Math.abs(top - 260) < 2) return done(true)
		list.scrollTop += fold ? top - 260 : 400
		setTimeout(() => done(false), 200)
	})`)
}
