package web_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	oslo, messages := s.conversation("Trip to Oslo", "When does the ferry leave?", "At nine.", "And the fjord?", "It stays.")
	hidden := s.append(oslo, messages[1], "user", "Is there a lighthouse on the way?")
	hiddenLeaf := s.append(oslo, hidden, "assistant", "Yes, an old one.")
	bug, _ := s.conversation("Parser bug", "Why does it fail?", "An unclosed quote.")
	check.Must(s.store.Append(t.Context(), bug, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"An aged one"}`)), CreatedAt: time.Now().AddDate(-2, 0, 0)}))(t)
	s.call("PATCH", "/v1/conversations/"+oslo.String(), `{"head_id":"`+messages[3].String()+`","tags":["travel"]}`, nil)
	b := newTab(t, s, "/")
	b.until(`document.querySelectorAll('.entry').length === 2`)

	// By title.
	b.keys("k", chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches('.search input')`)
	b.keys("oslo")
	b.until(`document.querySelectorAll('.results [data-result]').length === 1`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.innerText === 'Trip to Oslo'`)
	b.keys(kb.Enter)
	b.until(`location.pathname.endsWith($1)`, messages[3].String())

	// By what was said, on a branch that isn't the active one.
	b.keys("k", chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches('.search input') && document.activeElement.selectionEnd === 4`)
	b.keys("lighthouse")
	b.until(`document.querySelector('.hit mark')?.innerText === 'lighthouse'`)
	b.keys(kb.Enter)
	b.until(`location.pathname.endsWith($1)`, hiddenLeaf.String())
	b.marks("sought", hidden)
	b.keys("k", chromedp.ModifierCtrl)
	b.keys("unheard-of")
	b.shows("Nothing found.")
	b.keys(kb.Escape)
	b.until(`document.querySelectorAll('.entry').length === 2`)

	// While a word is typed; what is found is marked, also by its beginning.
	eval[any](b, `document.querySelector('.search input').select()`)
	b.keys("k", chromedp.ModifierCtrl)
	b.keys("lightho")
	b.until(`document.querySelector('.hit mark')?.innerText === 'lighthouse' && document.querySelector('.group-of h2').innerText.includes('Trip to Oslo')`)
	b.keys(kb.Enter)
	b.until(`location.pathname.endsWith($1) && [...CSS.highlights.get('found') ?? []].some(r => r.toString() === 'lighthouse')`, hiddenLeaf.String())
	b.view("marked")
	b.keys("k", chromedp.ModifierCtrl)
	b.keys(kb.Escape)
	b.until(`!CSS.highlights.has('found')`)

	// From another conversation.
	b.click(".entry a", "Parser bug")
	b.until(`document.querySelector('.title').innerText === 'Parser bug'`)
	b.keys("k", chromedp.ModifierCtrl)
	b.keys("fjord")
	b.click(".hit", "")
	b.marks("sought", messages[2])

	// In the open conversation alone, in those of a tag, and of some time.
	found := `[...document.querySelectorAll('.group-of h2')].map(h => h.firstChild.textContent).join()`
	b.click(".branch-head .menu button", "Conversation")
	b.click("[role=menuitem]", "Find in this conversation")
	b.until(`document.activeElement.matches('.search input')`)
	b.keys("an")
	b.until(found + ` === 'Trip to Oslo'`)
	b.view("scope")
	b.click(".search-filter .chip", "This conversation")
	b.until(found + ` === 'Parser bug,Trip to Oslo'`)
	b.click(".search-filter button", "any tag")
	b.click("[role=menuitemradio]", "travel")
	b.until(found + ` === 'Trip to Oslo'`)
	b.click(".search-filter button", "travel")
	b.click("[role=menuitemradio]", "any tag")
	b.until(`document.querySelectorAll('.hit').length === 4`)
	b.click(".search-filter button", "any time")
	b.click("[role=menuitemradio]", "past month")
	b.until(`document.querySelectorAll('.hit').length === 3 && !document.querySelector('.results').innerText.includes('aged')`)
	b.click(".search-filter button", "past month")
	b.click("[role=menuitemradio]", "older than a year")
	b.until(`document.querySelectorAll('.hit').length === 1 && document.querySelector('.results').innerText.includes('aged')`)

	// The list makes room.
	b.click(`[aria-label="Hide the list"]`, "")
	b.until(`document.querySelector('main').getBoundingClientRect().left === 0`)
	b.view("alone")
	b.click(`.branch-head [aria-label="Conversations"]`, "")
	b.until(`document.querySelector('main').getBoundingClientRect().left > 0`)
}

func TestRenameAndDelete(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, _ := s.conversation("First", "One?", "One.")
	second, _ := s.conversation("Second", "Two?", "Two.")
	b := newTab(t, s, "/c/"+first.String())
	b.until(`document.querySelector('.title')?.innerText === 'First'`)

	// Where it stands, and in the list.
	b.click(".title button", "")
	b.until(`document.activeElement.matches('.title-field')`)
	b.keys("First of all") // in place of what is selected
	b.keys(kb.Enter)
	b.until(`document.querySelector('.title').innerText === 'First of all' && document.querySelector('.entry.current').innerText.includes('First of all')`)
	b.hover(".entry a", "Second")
	b.click(".entry .menu button", "Actions of Second")
	b.click("[role=menuitem]", "Rename")
	b.until(`document.activeElement.matches('.rename')`)
	b.keys("Next") // what was there is selected
	b.keys(kb.Enter)
	b.until(`[...document.querySelectorAll('.entry')].some(e => e.innerText.trim() === 'Next')`)
	c, err := s.store.Conversation(t.Context(), second)
	check.That(t, err == nil && c.Title == "Next", "the title is %q, %v", c.Title, err)

	// Deleting leaves the page at the start, and can be taken back for a while.
	remove := func(after int) {
		b.lasting(after)
		b.click(".branch-head .menu button", "Conversation")
		b.click("[role=menuitem]", "Delete the conversation")
		b.until(`location.pathname === '/' && ` + entries + ` === 'Next'`)
	}
	remove(never)
	b.view("deleted")
	b.click(".notice button", "Undo")
	b.until(`location.pathname.startsWith($1) && localStorage.getItem('coppice.deleting') === '{}' && `+entries+`.includes('First of all')`, "/c/"+first.String())
	check.That(t, !s.gone(first)(), "it is deleted all the same")
	remove(0)
	check.Eventually(b.t, "the conversation is deleted", s.gone(first))
	b.do(chromedp.Navigate(s.url + "/c/" + first.String()))
	b.shows("It was deleted, or the address is wrong.")
	b.send("Another, then?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 2 && !location.pathname.includes($1)`, first.String())
}

// dropped hands a file to the page. A file from outside can't be dragged by a script
// but for its last step.
const dropped = `{
	const data = new DataTransfer()
	data.items.add(new File([Uint8Array.from(atob($1), c => c.charCodeAt(0))], $2))
	document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
}`

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s, "/")
	b.shows("No conversations yet.")
	export := check.Must(os.ReadFile("../testdata/chatgpt.json"))(t)
	eval[any](b, dropped, base64.StdEncoding.EncodeToString(export), "conversations.json")
	b.until(`document.querySelector('dialog')?.innerText.includes('conversations.json')`)
	b.shows("from chatgpt.")
	b.shows("on what was changed")
	b.click("dialog button", "Done")
	b.until(`document.querySelectorAll('.entry').length > 0`)

	// What is no export says so.
	letter := filepath.Join(t.TempDir(), "letter.txt")
	check.NoError(t, os.WriteFile(letter, []byte("nothing of the kind"), 0o600))
	b.do(chromedp.SetUploadFiles(`[aria-label="Files to import"]`, []string{letter}))
	b.until(`document.querySelector('dialog .bad')`)
	b.keys(kb.Escape)
	b.until(`!document.querySelector('dialog')`)

	folder := t.TempDir()
	command(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	b.click(".entry a", "")
	b.until(`document.querySelector('.message')`)
	for _, export := range []struct{ form, extension, holds string }{
		{"Coppice", ".jsonl", `"type":"conversation"`},
		{"Markdown", ".md", "# "},
		{"llama.cpp", ".json", `"conv"`},
		{"Everything", "Coppice.jsonl", `"type":"conversation"`},
	} {
		b.click(".branch-head .menu button", "Conversation")
		b.click("[role=menuitem]", "Export…")
		b.click("dialog button", export.form)
		var content string
		check.Eventually(b.t, "the download "+export.extension, func() bool {
			found, _ := filepath.Glob(filepath.Join(folder, "*"+export.extension))
			if len(found) == 0 {
				return false
			}
			data, err := os.ReadFile(found[0])
			content = string(data)
			return err == nil && strings.Contains(content, export.holds)
		})
	}
}

// TestKey serves a database in which a key was made.
func TestKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("Secret", "One?", "One.")
	_, secret, err := s.keys.Create(t.Context(), "default", "test")
	check.NoError(t, err)
	b := newTab(t, s, "/")
	b.shows("This server needs a key")
	b.keys("cop_wrong")
	b.keys(kb.Enter)
	b.until(`document.activeElement.value === ''`)
	b.shows("This server needs a key")
	b.shows("The server doesn’t take this key.")
	b.audit("wrong key")
	b.keys(secret)
	b.keys(kb.Enter)
	b.until(`document.querySelectorAll('.entry').length === 1`)
	b.click(".entry a", "Secret")
	b.until(`document.querySelectorAll('.message').length === 2`)
	b.send("Two?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message').length === 4`)
	if urls := b.requests(); slices.ContainsFunc(urls, func(u string) bool { return strings.Contains(u, secret) }) {
		t.Error("the key stands in an address")
	}

	// It can be forgotten, and with it goes what came by it, in each tab.
	other := newTab(t, s, b.path(), beside(b))
	other.until(`document.querySelectorAll('.message').length === 4`)
	b.click(".composer textarea", "")
	b.keys("Unsent")
	b.until(`Object.values(localStorage).includes('Unsent')`)
	eval[any](b, `document.activeElement.blur()`)
	b.keys("?")
	b.click("dialog button", "Forget the key")
	for _, b := range []*tab{b, other} {
		b.shows("This server needs a key")
		b.hides("The server doesn’t take this key.")
		if left := eval[string](b, `document.documentElement.outerHTML + location + JSON.stringify([localStorage, sessionStorage])`); strings.Contains(left, "Secret") || strings.Contains(left, "Two?") ||
			strings.Contains(left, "Unsent") || strings.Contains(left, secret) || strings.Contains(left, "/c/") {
			t.Errorf("the tab still has %s", left)
		}
	}
	b.keys(secret)
	b.keys(kb.Enter)
	b.until(`!document.querySelector('dialog')`)
}

// TestSearchMore reads on: more pages, more of a conversation.
func TestSearchMore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("Hazel number %d.", i))
	}
	s.conversation("A hedge", many...)
	s.conversation("A wood", "A hazel, too.")
	b := newTab(t, s, "/")
	b.until(`document.querySelectorAll('.entry').length === 2`)
	b.keys("k", chromedp.ModifierCtrl)
	b.keys("hazel")
	b.until(`document.querySelectorAll('.group-of').length === 2 && document.querySelectorAll('.hit').length === 4`)
	b.click(".more-hits", "16 more messages here")
	b.until(`document.querySelectorAll('.hit').length === 20`)
	b.view("folders")
	b.click(".more-hits", "More messages")
	b.until(`document.querySelectorAll('.hit').length === 31 && !document.querySelector('.more-hits')`)
}

// A conversation is opened that is further down than the list has been read.
func TestListAndDirections(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, _ := s.conversation("The oldest", "One?", "One.")
	for i := range 60 {
		s.conversation(fmt.Sprintf("Conversation %d", i))
	}
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelectorAll('.entry').length === 51 && document.querySelector('.entry.current')?.innerText.includes('The oldest')`)
	b.until(`document.querySelector('.group').innerText === 'Open'`)
	// When the page listens, it reads the conversation and the branch's end once more, and
	// the tree only if they changed.
	its := "/v1/conversations/" + id.String()
	const read = `performance.getEntriesByType('resource').filter(e => e.name.split('?')[0].endsWith($1)).length`
	b.until(read+" === 2", its)
	b.until(read+" === 2", "/transcript")
	check.Equal(t, "the tree was read by", eval[int](b, strings.Replace(read, "$1", "'/tree'", 1)), 1)
	// Another title doesn't bring it further up, to the end of what has been read.
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"title":"The very oldest"}`, nil)
	b.until(`document.querySelector('.entry.current').innerText.includes('The very oldest')`)
	check.Equal(t, "the first group", eval[string](b, `document.querySelector('.group').innerText`), "Open")
	// Once the list comes to it, it stands there alone.
	b.until(`(document.querySelector('.list').scrollTop = 1e6, document.querySelectorAll('.entry').length === 61 && document.querySelectorAll('.entry.current').length === 1)`)

	// Text of both directions is shown as it is read.
	id, _ = s.conversation("עץ", "שלום, מה שלומך?", "שלום!\n\nAnd English.\n\n- אחת\n- שתיים\n\n- [x] done\n- [ ] open\n\n# One\n\n### Three\n\n```go\nx := 1\n```")
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`document.querySelectorAll('.message').length === 2 && document.querySelector('.code')`)
	for selector, want := range map[string]string{
		".message.user .plain": "rtl", ".message.assistant .prose p": "rtl", ".message.assistant .prose p ~ p": "ltr", ".message.assistant ul": "rtl",
		".message.assistant pre": "ltr", ".title button": "rtl", ".entry a": "rtl", ".composer textarea": "ltr",
	} {
		b.until(`document.querySelector($1)`, selector)
		got := eval[string](b, `getComputedStyle(document.querySelector($1)).direction`, selector)
		check.That(t, got == want, "%s reads %s", selector, got)
	}
	got := eval[string](b, `getComputedStyle(document.querySelector('.message.assistant ul')).paddingRight`)
	check.That(t, got == "24px", "the bullets stand %s from the right", got)
	b.view("directions")
}
