package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// messages are the texts of the messages that are rendered, from the top.
const rendered = `[...document.querySelectorAll('.message .prose')].map(e => e.innerText.trim())`

func row(id uuid.UUID) string { return fmt.Sprintf(`.message[data-id="%s"]`, id) }

// ids are a page's conversation and head, by its address.
func (b *tab) ids() (conversation, head uuid.UUID) {
	b.t.Helper()
	b.until(`location.pathname.split('/').length === 4`)
	parts := strings.Split(b.path(), "/")
	return uuid.MustParse(parts[2]), uuid.MustParse(parts[3])
}

func TestSend(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	b := newTab(t, s, "/")
	b.shows("A conversation is a tree.")
	b.send("What is coppicing?")
	b.shows("What is coppicing?")
	b.until(`document.querySelector('.live')`)
	model.say("Cutting ")
	b.shows("Cutting")
	b.until(`document.querySelector('.live.streaming')`)
	// What is sent meanwhile waits for the end of the answer.
	b.click(".composer textarea", "")
	b.keys("How often?")
	b.keys(kb.Enter)
	b.shows("Sent when the answer ends.")
	b.audit("queued")
	model.say("a tree **back**.", end)
	b.until(`document.querySelector('.message.assistant strong')?.innerText === 'back' && document.querySelectorAll('.message[data-id]').length === 3`)
	b.until(`document.querySelector('.composer textarea').value === ''`)
	b.until(`document.querySelector('.live')`)

	conversation, head := b.ids()
	if got, want := s.texts(conversation, head), []string{"What is coppicing?", "Cutting a tree **back**.", "How often?"}; !slices.Equal(got, want) {
		t.Errorf("stored is %q, want %q", got, want)
	}
	// It has a title, in the list, too.
	b.until(`document.querySelector('.entry.current')?.innerText.includes('What is coppicing?')`)

	// The list tells of an answer that is on its way elsewhere, and of one that has come.
	// It is told in order: where it has the new title, it knows that the first answer ended.
	s.call("PATCH", "/v1/conversations/"+conversation.String(), `{"title":"Seven years"}`, nil)
	b.until(`document.querySelector('.entry.current')?.innerText.includes('Seven years')`)
	b.until(`document.querySelector('.entry [aria-label=answering]')`)
	b.click(`[aria-label="New conversation"]`, "")
	b.until(`location.pathname === '/'`)
	model.say("Every seven years.", end)
	b.until(`document.querySelector('.entry [aria-label="a new answer"]')`)
	b.view("answered")
	b.click(".entry a", "Seven years")
	b.until(`document.querySelectorAll('.message[data-id]').length === 4 && !document.querySelector('.live, .sign')`)
	_, head = b.ids()
	got := s.texts(conversation, head)
	check.That(t, len(got) == 4 && got[3] == "Every seven years.", "stored is %q", got)
	b.do(chromedp.Reload())
	b.until(rendered + `.join() === "What is coppicing?,Cutting a tree back.,How often?,Every seven years."`)
}

// TestStreamingKeepsThePlace has an answer grow below what is being read.
func TestStreamingKeepsThePlace(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	filler := strings.Repeat("A line of the answer that fills the screen, and more.\n\n", 30)
	id, messages := s.conversation("Place", "First?", filler, "Second?", filler)
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[3]))
	b.send("Third?")
	b.until(`document.querySelector('.live')`)
	model.say(filler)
	b.until(`document.querySelectorAll('.live p').length > 29`)
	atEnd := `(s => s.scrollTop + s.clientHeight > s.scrollHeight - 2)(document.querySelector('.transcript'))`
	b.until(atEnd)
	model.say(filler)
	b.until(`document.querySelectorAll('.live p').length > 59`)
	b.until(atEnd)

	// The reader goes up a little, and stays there.
	b.scroll(`list.scrollTop -= 7`)
	where := eval[float64](b, `document.querySelector('.live p').getBoundingClientRect().top`)
	model.say(filler)
	b.until(`document.querySelectorAll('.live p').length > 89`)
	now := eval[float64](b, `document.querySelector('.live p').getBoundingClientRect().top`)
	check.That(t, now == where, "the answer stood at %.1f, and while it grew at %.1f", where, now)
	b.click(".to-end", "")
	b.until(atEnd)
	model.say(end)
	b.until(`!document.querySelector('.live')`)
	b.until(atEnd)
}

func TestFailure(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("Failure", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))

	b.send("What next?")
	model.say(fail)
	b.shows("There is no answer.")
	b.shows("it fell over")
	b.view("failed")
	b.click("button", "Try again")
	model.say("Half an ", fail)
	b.shows("The answer broke off here: the connection to the model broke.")
	b.until(`!document.querySelector('.live')`)
	_, head := b.ids()
	got := s.texts(id, head)
	check.That(t, slices.Equal(got, []string{"One?", "One.", "What next?", "Half an "}), "stored is %q", got)
	b.click("button", "Try again")
	model.say("A whole answer.", end)
	b.shows("A whole answer.")
	b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)

	// One that ended with its server.
	cut, asked := s.conversation("Cut", "Zero?")
	s.call("POST", fmt.Sprintf("/v1/conversations/%s/messages", cut), fmt.Sprintf(
		`{"parent_id":%q,"role":"assistant","content":"Ze","metadata":{"reply":{"status":"stopped","finish_reason":"interrupted"}}}`, asked[0]), nil)
	b.do(chromedp.Navigate(s.url + "/c/" + cut.String()))
	b.shows("The answer broke off here: the server stopped.")
	b.audit("interrupted")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Edit", "First?", "First.", "Second?", "Second.")
	b := newTab(t, s, "/c/"+id.String())
	b.hover(row(messages[2])+" .body", "")
	b.click(row(messages[2])+" .actions button", "edit")
	b.shows("Sending makes a new branch.")
	b.until(`document.activeElement.matches('.editor textarea') && document.activeElement.value === 'Second?'`)
	b.keys(" Or third?")
	b.audit("edit")
	b.click("button", "Send as new branch")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 4`)
	b.until(`[...document.querySelectorAll('.message.user')].at(-1).querySelector('.siblings')?.innerText.trim() === '2/2'`)
	_, head := b.ids()
	got := s.texts(id, head)
	check.That(t, len(got) == 4 && got[2] == "Second? Or third?" && strings.Contains(got[3], "offline model"),
		"stored is %q", got)
	b.shows("This is the offline model")

	// The first message is edited to a new root.
	b.hover(row(messages[0])+" .body", "")
	b.click(row(messages[0])+" .actions button", "edit")
	b.until(`document.activeElement.matches('.editor textarea')`)
	b.keys(" At all?")
	b.keys(kb.Enter, chromedp.ModifierCtrl)
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 2`)
	_, head = b.ids()
	if got := s.texts(id, head); len(got) != 2 || got[0] != "First? At all?" {
		t.Errorf("stored is %q", got)
	}
	// Escape leaves an edit, and the focus on the message.
	b.click(".message.user .actions button", "edit")
	b.until(`document.activeElement.matches('.editor textarea')`)
	b.keys(kb.Escape)
	b.until(`!document.querySelector('.editor') && document.activeElement.matches('.message.user')`)
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	filler := strings.Repeat("So it goes on, line after line, until the screen is full and more than that. ", 12)
	id, messages := s.conversation("Switch", "Start", filler, "Fork?", filler, "Deep?", "Deep. "+filler)
	other := s.append(id, messages[1], "user", "The other way?")
	otherLeaf := s.append(id, s.append(id, s.append(id, other, "assistant", filler), "user", "And on?"), "assistant", "On. "+filler)
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[5]))
	b.until(`document.querySelector($1)`, row(messages[5]))

	// Bring the fork into view, where its position can be compared.
	eval[any](b, `document.querySelector('.transcript').scrollTo(0, 0)`)
	b.until(`document.querySelector($1)`, row(messages[2]))
	eval[any](b, `{ const s = document.querySelector('.transcript'); s.scrollTop += document.querySelector($1).getBoundingClientRect().top - 300 }`, row(messages[2]))
	before := eval[float64](b, `document.querySelector($1).getBoundingClientRect().top`, row(messages[2]))
	b.click(row(messages[2])+" .siblings button", "Next")
	b.until(`document.querySelector($1)`, row(other))
	b.until(`location.pathname.endsWith($1)`, otherLeaf.String())
	if after := eval[float64](b, `document.querySelector($1).getBoundingClientRect().top`, row(other)); after < before-2 || after > before+2 {
		t.Errorf("the fork stood at %.0f, and after the switch at %.0f", before, after)
	}
	b.marks("fresh", other)

	// Remembered: by the address, and by the conversation.
	b.do(chromedp.Reload())
	b.until(`document.querySelector($1)`, row(otherLeaf))
	b.until(`fetch($1).then(r => r.json()).then(c => c.head_id === $2)`, "/v1/conversations/"+id.String(), otherLeaf.String())
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`location.pathname.endsWith($1)`, otherLeaf.String())

	// Arrow keys on the switch, which keeps the focus.
	eval[any](b, `document.querySelector('.transcript').scrollTo(0, 0)`)
	b.until(`document.querySelector($1)`, row(other)+" .siblings")
	eval[any](b, `document.querySelector($1).focus()`, row(other)+" .siblings")
	b.keys(kb.ArrowLeft)
	b.until(`location.pathname.endsWith($1) && document.activeElement.closest('.message')?.dataset.id === $2`, messages[5].String(), messages[2].String())
	b.keys(kb.ArrowRight)
	b.until(`location.pathname.endsWith($1) && document.activeElement.closest('.message')?.dataset.id === $2`, otherLeaf.String(), other.String())
}

func TestContinueAndFork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Fork", "First?", "First.", "Second?", "Second.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.hover(row(messages[1])+" .body", "")
	b.click(row(messages[1])+" .menu button", "More")
	b.click("[role=menuitem]", "Continue from here")
	b.until(`location.pathname.endsWith($1) && document.querySelectorAll('.message[data-id]').length === 2`, messages[1].String())
	b.shows("The branch goes on below.")
	b.send("Third?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 4`)
	b.until(`document.querySelectorAll('.message .siblings').length === 1`)

	// With the other versions of its messages, and alone.
	second := row(messages[2])
	b.do(chromedp.Navigate(s.url + "/c/" + id.String() + "/" + messages[2].String()))
	b.until(`document.querySelector($1)`, second)
	b.hover(second+" .body", "")
	b.click(second+" .menu button", "More")
	b.click("[role=menuitem]", "Fork with all versions")
	b.until(`document.querySelector('.message.last .siblings')?.innerText.includes('1/2')`)
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.hover(row(messages[0])+" .body", "")
	b.click(row(messages[0])+" .actions button", "fork")
	b.until(`document.querySelectorAll('.message[data-id]').length === 1`)
	forked, head := b.ids()
	check.That(t, forked != id, "the fork is the same conversation")
	got := s.texts(forked, head)
	check.That(t, slices.Equal(got, []string{"First?"}), "the fork has %q", got)
	b.click("button", "ask for an answer")
	b.until(`document.querySelectorAll('.message[data-id]').length === 2`)
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Prune", "First?", "First.", "Second?", "Second.", "Third?", "Third.")
	s.append(id, messages[3], "user", "Fourth?")
	s.summary(id, messages[4], messages[1])
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[5]))
	b.shows("2 messages folded")
	b.hover(row(messages[2])+" .body", "")
	b.click(row(messages[2])+" .menu button", "More")
	b.click("[role=menuitem]", "Delete from here")
	b.shows("This message goes, and 4 messages below it, on 2 branches. 1 summary that saw them goes as well.")
	b.click("dialog button", "Cancel")
	b.until(`!document.querySelector('dialog')`)
	b.hover(row(messages[2])+" .body", "")
	b.click(row(messages[2])+" .menu button", "More")
	b.click("[role=menuitem]", "Delete from here")
	b.lasting(never)
	b.click("dialog button", "Delete 5 messages")
	b.shows("5 messages deleted.")
	left := `location.pathname.endsWith($1) && document.querySelectorAll('.message[data-id]').length === 2 && !document.querySelector('.banner')`
	b.until(left, messages[1].String())
	there := func() bool { _, err := s.store.Message(t.Context(), id, messages[2]); return err == nil }
	// It can be taken back for a while.
	b.click(".notice button", "Undo")
	b.marks("sought", messages[2])
	check.That(t, there(), "the message is deleted all the same")
	b.hover(row(messages[2])+" .body", "")
	b.click(row(messages[2])+" .menu button", "More")
	b.click("[role=menuitem]", "Delete from here")
	b.lasting(0)
	b.click("dialog button", "Delete 5 messages")
	b.until(left, messages[1].String())
	check.Eventually(b.t, "the messages are deleted", func() bool { return !there() })
	// The last root goes, too, and leaves an empty conversation to write in.
	b.hover(row(messages[0])+" .body", "")
	b.click(row(messages[0])+" .menu button", "More")
	b.click("[role=menuitem]", "Delete from here")
	b.click("dialog button", "Delete 2 messages")
	b.until(`document.querySelectorAll('.message[data-id]').length === 0`)
	b.send("Anew")
	b.until(`document.querySelectorAll('.message[data-id]').length === 2`)
	page, err := s.store.Branches(t.Context(), id, tree.Paging{})
	check.That(t, err == nil && len(page.Data) == 1, "%d leaves, %v", len(page.Data), err)
}

// The connection is cut amid an answer, and the server is away altogether.
func TestReconnect(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("Reconnect", "One?", "One.")
	s.conversation("Elsewhere", "Two?", "Two.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.send("Tell me a story")
	model.say("Once ", "upon ")
	b.shows("Once upon")
	s.web.CloseClientConnections()
	model.say("a ", "time", end)
	b.until(`!document.querySelector('.live')`)
	b.shows("Once upon a time")
	_, head := b.ids()
	check.Equal(t, "stored", s.texts(id, head)[3], "Once upon a time")

	// A reload in the middle picks it up as well.
	b.send("Another")
	model.say("There ", "was ")
	b.shows("There was")
	b.do(chromedp.Reload())
	b.shows("There was")
	model.say("a hazel.", end)
	b.shows("There was a hazel.")
	b.until(`!document.querySelector('.live')`)

	// The server is gone: what was typed is sent when it is back.
	s.goes()
	b.send("Are you there?")
	b.shows("The server doesn’t answer.")
	b.shows("waiting for the server")
	b.view("gone")
	b.click(".composer textarea", "")
	b.keys("typed meanwhile")
	model.say("I am.", end)
	s.comesBack()
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 8`)
	b.shows("I am.")
	b.hides("The server doesn’t answer.")
	b.until(`document.querySelector('.composer textarea').value === 'typed meanwhile'`)
	_, head = b.ids()
	got := s.texts(id, head)
	check.That(t, len(got) == 8 && got[6] == "Are you there?", "stored is %q", got)

	// Another conversation comes when the server does. An answer on its way is still known
	// where what changed meanwhile isn't told.
	b.keys(kb.Enter)
	b.until(`document.querySelector('.entry [aria-label=answering]')`)
	s.goes()
	b.click(".entry a", "Elsewhere")
	b.shows("It comes as soon as the server does.")
	b.hides("Not found")
	eval[any](b, `void (f => window.fetch = (url, init) => (delete init.headers['Last-Event-ID'], f(url, init)))(fetch)`)
	s.comesBack()
	b.shows("Two.")
	model.say("I am.", end)
	b.until(`document.querySelector('.entry [aria-label="a new answer"]')`)
}

// The text of a message that is too large comes back, and nothing else is left of it.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	check.Long(t)
	s := newSite(t)
	b := newTab(t, s, "/")
	b.shows("A conversation is a tree.")
	eval[any](b, `(field => {
		field.value = 'word '.repeat($1)
		field.dispatchEvent(new InputEvent('input', { bubbles: true }))
		field.focus()
	})(document.querySelector('.composer textarea'))`, tree.MaxBodyBytes/4)
	b.keys(kb.Enter)
	b.shows("Send messages in several requests, and a long text as an attachment.")
	b.hides("Try again")
	b.click("button", "Back to the message")
	b.until(`location.pathname === '/' && document.querySelector('.composer textarea').textLength > 1e6`)
	b.shows("No conversations yet.")
}
