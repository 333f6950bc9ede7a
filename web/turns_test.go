package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
)

// holdAnswers lets a test keep answers from the page, as a slow connection does.
const holdAnswers = `{
	const fetched = window.fetch.bind(window)
	window.holds = []
	window.under = window.held = 0
	window.read = []
	window.fetch = async (path, options) => {
		if (String(path).endsWith('/v1/events')) return fetched(path, options)
		const by = window.holds.find(h => h.pattern.test((options?.method ?? 'GET') + ' ' + path) && h.where())
		window.under++
		try {
			const response = await fetched(path, options)
			if (by) {
				window.held++
				await by.freed
				window.held--
			}
			return response
		} finally {
			window.under--
			window.read.push(String(path))
		}
	}
}`

// hold keeps the answers to requests whose method and address match a regular
// expression, those that are sent from now on.
func (b *tab) hold(pattern string) {
	b.t.Helper()
	b.holdWhere(pattern, "true")
}

// holdWhere is hold for requests that are sent while a condition holds.
func (b *tab) holdWhere(pattern, condition string) {
	b.t.Helper()
	eval[any](b, `{
		const h = { pattern: new RegExp($1), where: () => `+condition+` }
		h.freed = new Promise(free => (h.free = free))
		window.holds.push(h)
	}`, pattern)
}

// pass keeps no more answers than those that are kept now.
func (b *tab) pass() {
	b.t.Helper()
	eval[any](b, `{ window.freeing = window.holds; window.holds = [] }`)
}

// release hands the answers over, and waits until the page has done what it does with them.
func (b *tab) release() {
	b.t.Helper()
	b.until(`window.held > 0`)
	eval[any](b, `[...window.holds.splice(0), ...window.freeing ?? []].forEach(h => h.free())`)
	for range 3 {
		b.until(`window.under === 0`)
		eval[any](b, `new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
	}
}

// TestLastSwitchStays switches on while the switch before is still read: the page
// stays where it was sent last.
func TestLastSwitchStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Switches", "Which?", "First.")
	second := s.append(id, messages[0], "assistant", "Second.")
	third := s.append(id, messages[0], "assistant", "Third.")
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, second))
	eval[any](b, holdAnswers)
	b.until(`document.querySelector($1) && document.querySelector('.map-item')`, row(second)+" .siblings")
	b.hold(messages[1].String() + "/newest-leaf")
	b.click(".message.last .siblings button", "Previous")
	b.until(`window.held === 1`)
	b.click(".message.last .siblings button", "Next")
	b.shows("Third.")
	b.release()
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
	if c, err := s.store.Conversation(t.Context(), id); err != nil || c.HeadID != third {
		t.Errorf("the head is %v, %v", c.HeadID, err)
	}

	// A way back by the browser ends a switch, too.
	b.hold(messages[1].String() + "/newest-leaf")
	eval[any](b, `document.activeElement.blur()`)
	b.keys("[")
	b.until(`location.pathname.endsWith($1)`, second.String())
	b.keys("[")
	b.until(`window.held === 1`)
	eval[any](b, `history.back()`)
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
	b.release()
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
}

// TestLateList has a list that is older than a change come after it: the change stays.
func TestLateList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, _ := s.conversation("First", "One?", "One.")
	s.call("PATCH", "/v1/conversations/"+first.String(), `{"tags":["wood"]}`, nil)
	b := newTab(t, s, "/")
	eval[any](b, holdAnswers)
	b.until(entries + ` === 'First'`)
	s.call("PATCH", "/v1/conversations/"+first.String(), `{"title":"Renamed"}`, nil)
	b.until(entries + ` === 'Renamed'`) // it listens
	rename := func(to string) {
		t.Helper()
		b.until(`window.held === 1`)
		eval[any](b, `{ window.read = [] }`)
		s.call("PATCH", "/v1/conversations/"+first.String(), fmt.Sprintf(`{"title":%q}`, to), nil)
		b.until(`window.read.includes($1)`, "/v1/conversations/"+first.String())
		b.pass()
		b.release()
		b.until(entries+` === $1`, to)
	}
	const list = `^GET /v1/conversations\?(?!archived)`
	b.hold(list)
	eval[any](b, `{ new BroadcastChannel('coppice').postMessage({ conversation: null }) }`) // as another tab
	rename("Renamed again")
	b.hold(list)
	b.click(".list-tags button", "wood")
	rename("Renamed while nothing is listed")
}

// TestTagsInARow adds a tag before the one before it is stored: both stay. Of what is
// changed twice, the last wish stays, however slow the first one is.
func TestTagsInARow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Tagged", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	eval[any](b, holdAnswers)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.act("Tagged", "Tags")
	b.until(`document.activeElement?.getAttribute('aria-label') === 'New tag'`)
	b.hold("^PATCH ")
	for _, tag := range []string{"wood", "hedge", "oak"} {
		b.keys(tag)
		b.keys(kb.Enter)
		b.until(`window.held === 1 && document.activeElement.value === ''`)
	}
	b.release()
	b.until(`document.querySelectorAll('dialog .chip').length === 3`)
	b.eventually("the tags are stored", func() bool {
		c, err := s.store.Conversation(t.Context(), id)
		return err == nil && strings.Join(c.Tags, " ") == "wood hedge oak"
	})
}

// TestListHasNoGap reads the list anew while a later page of it is on its way.
func TestListHasNoGap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var id uuid.UUID
	for i := range 120 {
		id, _ = s.conversation(fmt.Sprintf("Conversation %d", i))
	}
	b := newTab(t, s, "/")
	eval[any](b, holdAnswers)
	const all = `document.querySelectorAll('.entry').length`
	b.until(all + ` === 50`)
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"title":"The last one"}`, nil)
	b.until(entries + `.startsWith('The last one,') && window.under === 0`) // it listens, and has read what it reads then
	b.holdWhere(`^GET /v1/conversations\?.*cursor=`, all+` === 100`)
	b.until(`(document.querySelector('.list').scrollTop = 1e6, ` + all + ` === 100 && window.held === 1)`)
	b.pass()
	eval[any](b, `{ new BroadcastChannel('coppice').postMessage({ conversation: null }) }`)
	b.until(all + ` === 50`)
	b.release()
	b.until(`(document.querySelector('.list').scrollTop = 1e6, ` + all + ` === 120)`)
}

// TestEditOfTheFirstMessageStays reads the conversation again while an edit of its
// first message is on its way: the page stays where the edit goes.
func TestEditOfTheFirstMessageStays(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("Before", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"title":"It listens"}`, nil)
	b.until(`document.querySelector('.title').innerText === 'It listens'`)
	eval[any](b, `{
		const fetched = window.fetch.bind(window)
		const let_go = new Promise(go => (window.letGo = go))
		window.fetch = async (path, options) => {
			if (options?.method === 'POST') await let_go
			return fetched(path, options)
		}
	}`)
	b.keys(kb.ArrowUp)
	b.until(`document.activeElement.matches('.editor textarea')`)
	b.keys(", edited")
	b.keys(kb.Enter, chromedp.ModifierCtrl)
	b.until(`!document.querySelector($1) && document.querySelector('.transcript').innerText.includes('One?, edited')`, row(messages[0]))
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"title":"After"}`, nil)
	b.until(`document.querySelector('.title').innerText === 'After'`) // and what is shown with it
	eval[any](b, `window.letGo()`)
	model.say("Another.", end)
	b.until(`!document.querySelector('.live') && ` + rendered + `.join() === 'One?, edited,Another.'`)
	_, head := b.ids()
	if got := s.texts(id, head); strings.Join(got, "|") != "One?, edited|Another." {
		t.Errorf("the branch is %q", got)
	}
}
