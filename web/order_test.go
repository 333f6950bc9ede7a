package web_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// narrow is a telephone. Each flow is tried in one look: some on a telephone, the
// others in a window.
var narrow = []option{size(390, 844), touch}

// list makes the list of conversations be seen.
func (b *tab) list() {
	b.t.Helper()
	b.until(`document.querySelector('.entry, .sidebar-empty')`)
	if eval[bool](b, `innerWidth < 720 && !document.querySelector('.sidebar.open')`) {
		b.click(".branch-head button", "Conversations")
		b.until(`document.querySelector('.sidebar.open')`)
	}
}

// act chooses something of a conversation's menu in the list.
func (b *tab) act(title, item string) {
	b.t.Helper()
	b.list()
	b.hover(".entry a", title)
	b.click(".entry .menu button", "Actions of "+title)
	b.click("[role=menuitem]", item)
}

const entries = `[...document.querySelectorAll('.entry a')].map(e => e.textContent.trim()).join()`

// say sends a message by the button, as on a telephone.
func (b *tab) say(text string) {
	b.t.Helper()
	b.click(".composer textarea", "")
	b.keys(text)
	b.click(".composer .send", "")
}

// lasting has what the page does after ten seconds, as the deletion of a
// conversation, come after so many milliseconds.
func (b *tab) lasting(milliseconds int) {
	b.t.Helper()
	eval[any](b, `(later => {
		window.setTimeout = (f, ms, ...rest) => later(f, ms === 10_000 ? window.lasts : ms, ...rest)
	})(window.setTimeout.bind(window)); window.lasts = $1`, milliseconds)
}

// never is longer than any test takes.
const never = 1 << 30

// TestOrder pins, tags and archives conversations, and finds them again.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	old, _ := s.conversation("Old", "One?", "One.")
	s.conversation("Middle", "Two?", "Two.")
	s.conversation("New", "Three?", "Three.")
	b := newTab(t, s, "/", alsoDark)
	b.list()
	b.until(entries + ` === 'New,Middle,Old'`)
	check.That(t, !eval[bool](b, `!!document.querySelector('.to-archive')`),
		"the archive is offered, and nothing is in it")

	b.act("Old", "Pin to the top")
	b.until(entries + ` === 'Old,New,Middle' && document.querySelector('.group').innerText === 'Pinned'`)

	b.act("Middle", "Tags")
	b.until(`document.activeElement?.getAttribute('aria-label') === 'New tag'`)
	b.keys("two words")
	b.keys(kb.Enter)
	b.until(`document.querySelector('dialog .chip')?.innerText.includes('two words')`)
	b.keys("wood")
	b.keys(kb.Enter)
	b.until(`document.querySelectorAll('dialog .chip').length === 2`)
	b.view("tags")
	b.click("dialog .chip button", "Remove the tag wood")
	b.until(`document.querySelectorAll('dialog .chip').length === 1`)
	b.click("dialog button", "Done")
	b.list()
	b.view("list")
	b.click(".list-tags button", "two words")
	b.until(entries + ` === 'Middle'`)
	b.audit("list")
	b.click(".list-tags button", "two words")
	b.until(entries + ` === 'Old,New,Middle'`)

	b.act("Old", "Archive")
	b.until(entries + ` === 'New,Middle'`)
	b.list()
	b.click(".to-archive", "")
	b.until(entries + ` === 'Old'`)
	b.view("archive")
	c, err := s.store.Conversation(t.Context(), old)
	check.That(t, err == nil && c.Archived && c.Pinned, "it is %+v, %v", c.Order, err)
	b.act("Old", "Bring back")
	b.until(`document.querySelector('.sidebar-empty')?.innerText === 'Nothing is archived.'`)
	b.list()
	b.click(".list-archive button", "Back to the list")
	b.until(entries + ` === 'Old,New,Middle' && !document.querySelector('.to-archive')`)

	// What another program changes shows, too.
	s.call("PATCH", "/v1/conversations/"+old.String(), `{"archived":true}`, nil)
	b.until(entries + ` === 'New,Middle' && document.querySelector('.to-archive')`)
	s.call("PATCH", "/v1/conversations/"+old.String(), `{"archived":false}`, nil)
	b.until(entries + ` === 'Old,New,Middle'`)
	s.call("PATCH", "/v1/conversations/"+old.String(), `{"pinned":false,"tags":["elsewhere"]}`, nil)
	b.until(entries + ` === 'New,Middle,Old'`)
	page, err := s.store.Conversations(t.Context(), tree.ConversationFilter{Tag: "two words"}, tree.Paging{})
	check.That(t, err == nil && len(page.Data) == 1, "%d conversations have the tag, %v", len(page.Data), err)
}

// gone tells whether a conversation was deleted.
func (s *site) gone(id uuid.UUID) func() bool {
	return func() bool {
		_, err := s.store.Conversation(s.t.Context(), id)
		return errors.Is(err, fault.NotFound)
	}
}

// TestDeleteOfClosedTab deletes and closes the tab within the time in which that can
// be taken back: the conversation goes all the same. What a tab that crashed has left
// behind is deleted by the next one.
func TestDeleteOfClosedTab(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, _ := s.conversation("First", "One?", "One.")
	second, _ := s.conversation("Second", "Two?", "Two.")
	third, _ := s.conversation("Third", "Three?", "Three.")
	b := newTab(t, s, "/")
	watching := newTab(t, s, "/", beside(b))
	watching.until(entries + ` === 'Third,Second,First'`)
	b.list()
	b.lasting(never)
	b.act("First", "Delete")
	b.until(entries + ` === 'Third,Second'`)
	watching.until(entries + ` === 'Third,Second'`)
	check.That(t, !s.gone(first)(), "it is deleted at once")
	b.do(chromedp.Navigate("about:blank"))
	check.Eventually(b.t, "the conversation of the tab that went is deleted", s.gone(first))
	check.That(t, !s.gone(second)(), "another one is deleted")

	eval[any](watching, `localStorage.setItem('coppice.deleting', JSON.stringify({ [$1]: Date.now() - 60_000 }))`, second.String())
	command(watching, page.Reload, page.ReloadParams{})
	check.Eventually(watching.t, "what a crash left behind is deleted", s.gone(second))
	watching.until(entries + ` === 'Third' && localStorage.getItem('coppice.deleting') === '{}'`)
	check.That(t, !s.gone(third)(), "a third one is deleted")
}

// TestEditAnswer puts another text beside an answer.
func TestEditAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Edits", "One?", "One.", "Two?", "Two.")
	b := newTab(t, s, "/c/"+id.String(), narrow...)
	b.until(`document.querySelector($1)`, row(messages[3]))
	b.hover(row(messages[1]), "")
	b.click(row(messages[1])+" [aria-label=More]", "")
	b.click("[role=menuitem]", "Edit this answer")
	b.until(`document.activeElement.matches('.editor textarea')`)
	eval[any](b, `document.activeElement.select()`)
	b.keys("One, or the first.")
	b.view("edit-answer")
	b.click(".editor button", "Save as new branch")
	b.until(`document.querySelectorAll('.message[data-id]').length === 2 && document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)
	b.shows("One, or the first.")
	c := check.Must(s.store.Conversation(t.Context(), id))(t)
	got := s.texts(id, c.HeadID)
	check.That(t, slices.Equal(got, []string{"One?", "One, or the first."}), "the active branch is %q", got)
	b.click(".message.last .siblings button", "Previous")
	b.shows("Two.")
}

// TestPins pins a message, which shows, and takes the pin away from the list of pins.
func TestPins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Pins", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String(), narrow...)
	b.until(`document.querySelector($1)`, row(messages[1]))
	pinned := func() bool {
		m, err := s.store.Message(t.Context(), id, messages[0])
		return err == nil && m.Pinned
	}
	b.hover(row(messages[0]), "")
	b.click(row(messages[0])+" [aria-label=More]", "")
	b.click("[role=menuitem]", "Pin")
	b.until(`document.querySelector($1)`, row(messages[0])+" .pinned")
	check.Eventually(b.t, "the pin is stored", pinned)
	b.click(".branch-head .menu button", "Conversation")
	b.click("[role=menuitem]", "Prompt and settings")
	b.until(`document.querySelector('dialog .share-list')?.innerText.includes('One?')`)
	b.click("dialog .share-list button", "unpin")
	b.until(`!document.querySelector('dialog .share-list')`)
	b.click("dialog button", "Cancel")
	b.until(`!document.querySelector('.message .pinned')`)
	check.That(t, !pinned(), "it is pinned still")
	s.call("PATCH", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, messages[1]), `{"pinned":true}`, nil)
	b.until(`document.querySelector($1)`, row(messages[1])+" .pinned")
	b.view("pinned")
}

// Another prompt makes a new branch, and the page says so.
func TestPromptAndSettings(t *testing.T) {
	t.Parallel()
	small, large := newPuppet(), newPuppet()
	small.name, large.name = "acme-small", "acme-large"
	s := newSite(t, small, large)
	c := check.Must3(s.store.CreateConversation(t.Context(), tree.NewConversation{Title: "Settings", Metadata: []byte(`{"mine":1}`)}))(t)
	system := s.append(c.ID, uuid.Nil, "system", "Be brief.")
	question := s.append(c.ID, system, "user", "What is a coppice?")
	answer := s.append(c.ID, question, "assistant", "A wood that is cut.")
	b := newTab(t, s, "/c/"+c.ID.String(), alsoDark)
	b.until(`document.querySelector($1)`, row(answer))
	put := func(label, value string) {
		b.until(`[...document.querySelectorAll('.setting')].some(l => l.innerText.startsWith($1))`, label)
		eval[any](b, `{
			const e = [...document.querySelectorAll('.setting')].find(l => l.innerText.startsWith($1)).querySelector('input, textarea')
			e.value = $2
			e.dispatchEvent(new Event('input', { bubbles: true }))
		}`, label, value)
	}

	b.settings()
	b.until(`document.querySelector('.settings textarea').value === 'Be brief.'`)
	b.view("settings")
	put("Due at", "50")
	put("Stays at the end", "10")
	b.choose("[name=compaction]", "only when asked for")
	b.until(`document.querySelector('.settings-effect').innerText.includes('only when you ask for it')`)
	b.choose("[name=compaction]", "as the server")
	b.until(`document.querySelector('.settings-effect').innerText.includes('is compacted when it passes about 56,000')`)
	b.choose(".settings .choice", "acme-large")
	put("Temperature", "0.3")
	b.until(`!document.querySelector('.notice-in label')`)
	eval[any](b, `document.querySelector('.settings-effect').scrollIntoView()`)
	b.view("settings-end")
	b.click("dialog button", "Save")
	b.until(`!document.querySelector('dialog') && document.querySelector('.model-picker')?.value === 'acme-large'`)
	c = check.Must(s.store.Conversation(t.Context(), c.ID))(t)
	if got := fmt.Sprintf("%s %s", c.Metadata, c.Settings); got != `{"mine":1,"reply":{"model":"acme-large","temperature":0.3}} {"trigger_ratio":0.5,"keep_ratio":0.1}` {
		t.Errorf("stored are %s", got)
	}
	check.Equal(t, "the head", c.HeadID, answer)

	// Another prompt.
	b.settings()
	put("System prompt", "Be thorough.")
	b.until(`document.querySelector('.notice-in')?.innerText.includes('begins a new branch')`)
	b.shows("Copy the 2 messages of this branch below it")
	b.view("prompt")
	b.click("dialog button", "Save as new branch")
	b.until(`!document.querySelector('dialog') && document.querySelectorAll('.message[data-id]').length === 3`)
	b.shows("Be thorough.")
	c = check.Must(s.store.Conversation(t.Context(), c.ID))(t)
	if got := s.texts(c.ID, c.HeadID); !slices.Equal(got, []string{"Be thorough.", "What is a coppice?", "A wood that is cut."}) {
		t.Errorf("the new branch is %q", got)
	}
	if got := s.texts(c.ID, answer); !slices.Equal(got, []string{"Be brief.", "What is a coppice?", "A wood that is cut."}) {
		t.Errorf("the branch before is %q", got)
	}
	large.say("By the large one.", end)
	b.say("And then?")
	b.shows("By the large one.")
}

// TestPresets begins conversations with a preset and with settings of one's own.
func TestPresets(t *testing.T) {
	t.Parallel()
	small, large := newPuppet(), newPuppet()
	small.name, large.name = "acme-small", "acme-large"
	presets := []server.Preset{{
		Name: "Brief", Description: "Answers in one sentence.", System: "Be brief.", Model: "acme-large", Temperature: new(0.2),
		Settings: []byte(`{"keep_ratio":0.1}`),
	}, {Name: "Plain"}}
	s := newSiteWith(t, presets, small, large)
	b := newTab(t, s, "/", narrow...)
	b.choose(".begin-with .choice", "Brief")
	b.shows("Answers in one sentence.")
	b.until(`document.querySelector('.model-picker')?.value === 'acme-large'`)
	width := eval[int](b, `document.querySelector('.field').clientWidth`)
	check.That(t, width >= 300, "the message has %d pixels beside the tools", width)
	b.view("preset")
	large.say("A wood.", end)
	b.say("What is a coppice?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 3`)
	id, head := b.ids()
	c := check.Must(s.store.Conversation(t.Context(), id))(t)
	if got := fmt.Sprintf("%s %s %q", c.Metadata, c.Settings, s.texts(id, head)); got != `{"reply":{"model":"acme-large","temperature":0.2}} {"keep_ratio":0.1} ["Be brief." "What is a coppice?" "A wood."]` {
		t.Errorf("it began with %s", got)
	}

	// The next one begins with nothing, or with what is said for it.
	b.list()
	b.click(".sidebar-head button", "New conversation")
	b.until(`document.querySelector('.begin-with .choice')?.value === ''`)
	b.click(".begin-with button", "Prompt and settings")
	b.until(`document.activeElement.matches('.settings textarea')`)
	b.keys("Be kind.")
	b.click(".settings summary", "Presets of this browser")
	b.click(".more-settings input[maxlength]", "")
	b.keys("Kind")
	b.click("dialog button", "Keep")
	b.until(`document.querySelector('.more-settings li span')?.innerText === 'Kind'`)
	b.view("own preset")
	b.click("dialog button", "Save")
	b.shows("Be kind.")
	small.say("Gladly.", end)
	b.say("Help?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 3`)
	id, head = b.ids()
	got := s.texts(id, head)
	check.That(t, slices.Equal(got, []string{"Be kind.", "Help?", "Gladly."}), "it began with %q", got)

	// The page keeps it as a preset.
	b.do(chromedp.Navigate(s.url))
	b.choose(".begin-with .choice", "Kind")
	b.shows("Be kind.")
}
