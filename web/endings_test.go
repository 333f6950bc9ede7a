package web_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// dropped hands a file to the page as the last step of dragging it there does.
const dropped = `{
	const data = new DataTransfer()
	data.items.add(new File([Uint8Array.from(atob($1), c => c.charCodeAt(0))], $2))
	document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
}`

// TestEndingsInEachLook shows an answer that ended with its server, stops another, has
// others fail before their first word and after it, tries again, and imports a file and
// what is none.
func TestEndingsInEachLook(t *testing.T) {
	t.Parallel()
	export, err := os.ReadFile("../testdata/chatgpt.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range looks {
		t.Run(name, func(t *testing.T) {
			model := newPuppet()
			s := newSite(t, model)
			id, messages := s.conversation("Endings", "One?", "One.")
			cut, asked := s.conversation("Cut", "Zero?")
			s.call("POST", fmt.Sprintf("/v1/conversations/%s/messages", cut), fmt.Sprintf(
				`{"parent_id":%q,"role":"assistant","content":"Ze","metadata":{"reply":{"status":"stopped","finish_reason":"interrupted"}}}`, asked[0]), nil)
			b := newTab(t, s, "/c/"+cut.String(), options...)
			b.shows("The answer broke off here: the server stopped.")
			b.view("interrupted-" + name)
			b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
			b.until(`document.querySelector($1)`, row(messages[1]))
			over := func(ending string) {
				t.Helper()
				b.until(`!document.querySelector('.live.streaming, .live.waiting, .live.stopping') && document.querySelector($1)`, ending)
			}

			b.say("Count to a thousand")
			model.say("1 ", "2 ", "3 ")
			b.shows("1 2 3")
			b.view("streaming-" + name)
			b.click(".composer .stop", "")
			b.shows("Stopped here.")
			over(".message.last .ending.stopped")
			b.view("stopped-" + name)
			b.click("button", "Try again")
			model.say(fail)
			b.shows("There is no answer.")
			over(".ending.failed")
			b.view("no-answer-" + name)
			b.click("button", "Try again")
			model.say("Half an ", fail)
			b.shows("The answer broke off here: the model can’t be reached.")
			over(".message.last .ending.failed")
			b.view("broken-" + name)
			b.click("button", "Try again")
			model.say("A whole answer.", end)
			b.until(`!document.querySelector('.live') && document.querySelector('.message.last .siblings')?.innerText.trim() === '3/3'`)
			_, head := b.ids()
			if got := s.texts(id, head); !slices.Equal(got, []string{"One?", "One.", "Count to a thousand", "A whole answer."}) {
				t.Errorf("stored is %q", got)
			}

			eval[any](b, dropped, base64.StdEncoding.EncodeToString(export), "conversations.json")
			b.until(`document.querySelector('dialog')?.innerText.includes('(chatgpt)')`)
			b.view("imported-" + name)
			b.click("dialog button", "Done")
			b.until(`!document.querySelector('dialog')`)
			eval[any](b, dropped, base64.StdEncoding.EncodeToString([]byte("nothing of the kind")), "letter.txt")
			b.until(`document.querySelector('dialog h2')?.innerText === 'Not imported' && document.querySelector('dialog .bad').innerText.includes('drop it on the message field')`)
			b.view("not-imported-" + name)
			b.keys(kb.Escape)
			b.until(`!document.querySelector('dialog')`)
			b.list()
			b.until(`document.querySelectorAll('.entry').length > 1`)
		})
	}
}
