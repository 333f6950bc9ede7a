package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// corpus are the files of testdata/hostile: Markdown and HTML that set
// window.ran, or ask for something at evil.example, where they are obeyed. Texts that
// would be long to write down follow the files.
func corpus(t *testing.T) (texts []string, files int) {
	t.Helper()
	paths, err := filepath.Glob("testdata/hostile/*.md")
	check.Need(t, err == nil && len(paths) >= 20, "%d files, %v", len(paths), err)
	for _, file := range paths {
		text := check.Must(os.ReadFile(file))(t)
		texts = append(texts, string(text))
	}
	return append(texts,
		strings.Repeat("> ", 5000)+"<script>window.ran='deep quote'</script>",
		strings.Repeat("- ", 3000)+"<img src=x onerror=window.ran='deep list'>",
		strings.Repeat("[", 20000)+"x](javascript:window.ran='brackets')",
		strings.Repeat("**", 1000)+"<svg onload=window.ran='stars'>",
		strings.Repeat("<b>", 5000)+"<img src=x onerror=window.ran='tags'>",
		strings.Repeat("`", 5000)+"\n<script>window.ran='ticks'</script>",
		strings.Repeat("| a ", 2000)+"|\n"+strings.Repeat("|---", 2000)+"|\n<img src=x onerror=window.ran='wide'>",
		strings.Repeat("a.", 50_000)+"@<img src=x onerror=window.ran='address'>",
		"a"+strings.Repeat(" ", 100_000)+"<img src=x onerror=window.ran='blanks'>",
		strings.Repeat("<script>window.ran='long'</script>\n\n", 300),
		strings.Repeat("<script>window.ran='longest'</script>\n\n", 6000),
	), len(paths)
}

// unsafe lists what of a message stands on the page and shouldn't: elements,
// attributes and addresses beyond those that Markdown needs.
const unsafe = `(() => {
	const tags = new Set('DIV P BR HR EM STRONG DEL CODE PRE A UL OL LI BLOCKQUOTE H1 H2 H3 H4 H5 H6 TABLE THEAD TBODY TR TH TD IMG INPUT SPAN SUP BUTTON DETAILS SUMMARY'.split(' '))
	const attributes = new Set('class href title src alt align start type checked disabled data-language target rel tabindex aria-label aria-level open dir'.split(' '))
	const found = []
	for (const e of document.querySelectorAll('.math-set *')) { // KaTeX's, which may style and measure, but neither link nor load
		if (!/^(span|svg|path|line|math|semantics|annotation|m[a-z]+)$/.test(e.tagName.toLowerCase())) found.push('formula ' + e.tagName)
		for (const a of e.attributes) {
			if (/^on|href|^src|^id$|^data-/.test(a.name) || /url\(|javascript:/i.test(a.value)) found.push('formula ' + a.name + '=' + a.value)
		}
	}
	for (const e of document.querySelectorAll('.prose *, .plain *, .tool-body > *')) {
		if (e.closest('.math-set *')) continue
		if (e.matches('img.diagram')) { // in an image, nothing runs and nothing is loaded
			if (!/^data:image\/svg\+xml;/.test(e.src)) found.push(e.src)
			continue
		}
		if (!tags.has(e.tagName)) found.push(e.tagName)
		for (const a of e.attributes) {
			if (!attributes.has(a.name)) found.push(e.tagName + ' ' + a.name + '=' + a.value)
			if (a.name === 'aria-level' && !/^H[1-6]$/.test(e.tagName)) found.push('aria-level of ' + e.tagName)
			if (a.name === 'dir' && !/^(auto|ltr)$/.test(a.value)) found.push('dir ' + a.value)
			if (a.name === 'href' && !/^(https?|mailto|tel):/.test(a.value)) found.push(a.value)
			if (a.name === 'src' && !/^data:image\/(gif|png|jpeg|webp|avif);base64,/.test(a.value)) found.push(a.value)
		}
		if (e.tagName === 'INPUT' && !(e.type === 'checkbox' && e.disabled)) found.push(e.outerHTML)
		if (e.tagName === 'BUTTON' && e.parentElement.className !== 'code-head') found.push(e.outerHTML)
		for (const name of e.classList) {
			if (!/^(prose|block|plain|code|code-head|quiet|table|rest|more|math|math-display|math-set|hljs-.*|.*_)$/.test(name)) found.push('class ' + name)
		}
	}
	return found
})()`

func TestHostileMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	texts, files := corpus(t)
	c := check.Must3(s.store.CreateConversation(t.Context(), tree.NewConversation{Title: `<img src=x onerror="window.ran='title'"> "><script>window.ran='title'</script>`}))(t)
	parent := uuid.Nil
	var ids []uuid.UUID
	add := func(body map[string]any) {
		encoded := check.Must(json.Marshal(body))(t)
		m := check.Must(s.store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read(encoded)}))(t)
		parent = m.ID
		ids = append(ids, m.ID)
	}
	for i, text := range texts {
		if i >= files { // what is long is long as Markdown
			add(map[string]any{"role": "assistant", "content": text})
			continue
		}
		add(map[string]any{"role": "assistant", "content": text, "reasoning_content": text})
		add(map[string]any{"role": "user", "content": text, "name": "<b onclick=window.ran='name'>"})
		add(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": fmt.Sprint("call_", i), "type": "function", "function": map[string]any{"name": "<i onclick=window.ran='tool'>", "arguments": text},
		}}})
		add(map[string]any{"role": "tool", "tool_call_id": fmt.Sprint("call_", i), "content": []any{map[string]any{"type": "text", "text": text}}})
	}
	add(map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://evil.example/attached.png"}},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "javascript:window.ran='attached'"}},
		map[string]any{"type": "file", "file": map[string]any{"filename": "<img src=x onerror=window.ran='file'>"}},
	}})
	body, _ := json.Marshal(map[string]string{"role": "user", "content": strings.Join(texts[:files], "\n\n")}) // strings marshal
	check.Must(s.store.Summaries().Add(t.Context(), c.ID, tree.NewSummary{
		AnchorID: parent, Body: body, Range: tree.SummaryRange{LastSummarizedID: ids[4], Model: "<u onclick=window.ran='model'>"},
	}))(t)

	// All of it has room in the window.
	s.call("PATCH", "/v1/conversations/"+c.ID.String(), `{"settings":{"max_context_tokens":2000000}}`, nil)

	b := newTab(t, s, "/c/"+c.ID.String())
	b.until(`document.querySelector('.message[data-id]')`)
	check := func(where string) {
		t.Helper()
		found := eval[[]string](b, unsafe)
		check.That(t, len(found) == 0, "%s: on the page stand %.20q", where, found)
	}
	for i, id := range ids {
		b.render(i, id)
		eval[any](b, `document.querySelectorAll('.message details').forEach(d => d.open = true)`)
		eval[any](b, `document.querySelectorAll('[aria-label="Draw this diagram"]').forEach(b => b.click())`)
		b.until(`!document.querySelector('[aria-label="Draw this diagram"]')`)
		check(fmt.Sprintf("message %d", i))
	}
	b.showMessage(5, ids[5])
	b.click(".fold-rule", "")
	b.until(`document.querySelector('.summary-card .prose')`)
	check("summary")
	b.click("[role=tab]", "Context")
	b.until(`document.querySelectorAll('.piece.tail').length > 2 && document.querySelector('.piece.summary')`)
	eval[any](b, `document.querySelectorAll('.piece-head').forEach(p => p.click())`)
	b.until(`document.querySelectorAll('.piece-body').length === document.querySelectorAll('.piece').length`)
	check("context")
	// Pointers move over it, links and boxes get the focus.
	eval[any](b, `document.querySelectorAll('.prose *').forEach(e => { e.dispatchEvent(new PointerEvent('pointerenter')); e.dispatchEvent(new Event('focus')); e.dispatchEvent(new Event('toggle')) })`)
	b.harmless()
}

// The corpus comes in small pieces, so every broken off state is shown for a moment.
func TestHostileStream(t *testing.T) {
	t.Parallel()
	check.Long(t)
	model := newPuppet()
	s := newSite(t, model)
	b := newTab(t, s, "/")
	texts, files := corpus(t)
	for i, text := range texts[:files] {
		b.send(fmt.Sprintf("Say the worst, number %d", i))
		b.until(`document.querySelector('.live')`)
		for from := 0; from < len(text); from += 7 {
			model.say(strings.ToValidUTF8(text[from:min(from+7, len(text))], "�"))
			if from%70 == 0 {
				if found := eval[[]string](b, unsafe); len(found) > 0 {
					t.Errorf("after %q: on the page stand %q", text[max(0, from-80):from], found)
				}
			}
		}
		model.say(end)
		b.until(`!document.querySelector('.live')`)
	}
	b.harmless()
}

// TestPolicy has a script try what the sanitizer would have to let through.
func TestPolicy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s, "/")
	b.shows("A conversation is a tree.")
	for _, attempt := range []string{
		`document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.ran=1">')`,
		`document.body.innerHTML = '<b>x</b>'`,
		`{ const e = document.createElement('script'); e.textContent = 'window.ran = 1'; document.body.append(e) }`,
		`{ const e = document.createElement('div'); e.setAttribute('onclick', 'window.ran = 1'); document.body.append(e); e.click() }`,
		`new Function('window.ran = 1')()`,
		`setTimeout('window.ran = 1')`,
		`fetch('https://evil.example/', { mode: 'no-cors' })`,
		`new Image().src = 'https://evil.example/pixel.gif'`,
		`{ const e = document.createElement('iframe'); e.src = 'https://evil.example/'; document.body.append(e) }`,
		`{ const e = document.createElement('style'); e.textContent = 'body { display: none }'; document.body.append(e) }`,
		`trustedTypes.createPolicy('mine', { createHTML: s => s })`,
	} {
		refused := run(b, chromedp.Evaluate[bool](`new Promise(done => {
			document.addEventListener('securitypolicyviolation', () => done(true), { once: true })
			try { Promise.resolve((() => { `+attempt+` })()).catch(() => {}) } catch {}
			setTimeout(() => done(false), 10_000)
		})`, chromedp.EvalAwaitPromise, underPolicy))
		check.That(t, refused, "the policy allows %s", attempt)
	}
	b.mu.Lock()
	b.errors = nil // which are what this is about
	b.mu.Unlock()
	b.harmless()
}

// underPolicy has the page's policy hold for what a test evaluates, too.
func underPolicy(p *runtime.EvaluateParams) { p.AllowUnsafeEvalBlockedByCSP = new(bool) }

// harmless fails the test where something of the corpus was obeyed.
func (b *tab) harmless() {
	b.t.Helper()
	ran := eval[any](b, `window.ran ?? null`)
	check.That(b.t, ran == nil, "a script ran: %v", ran)
	if !strings.HasPrefix(eval[string](b, `location.href`), b.site.url) {
		b.t.Errorf("the page is at %s", b.path())
	}
	for _, url := range b.requests() {
		if strings.Contains(url, "evil.example") && !strings.HasPrefix(url, "data:") { // a diagram may name it, as a text
			b.t.Errorf("the page asked for %s", url)
		}
	}
}
