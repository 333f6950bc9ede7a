package openai_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// pictureOf is a PNG of at least so many bytes.
func pictureOf(t testing.TB, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	check.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))))
	return append(b.Bytes(), make([]byte, size)...)
}

func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// attached tells whether a tenant has an attachment with these bytes.
func (a *api) attached(tenant string, data []byte) bool {
	a.t.Helper()
	_, got, err := a.store.ForTenant(tenant).Attachments().One(a.t.Context(), sha256.Sum256(data))
	check.Need(a.t, err == nil || errors.Is(err, fault.NotFound), "%v", err)
	return err == nil && bytes.Equal(got, data)
}

// TestLargePicture holds that a picture too large for a message is stored beside it, comes to model
// and client as it was sent, and is known again in the same history.
func TestLargePicture(t *testing.T) {
	t.Parallel()
	check.Large(t)
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Hazel."))
	picture := pictureOf(t, 1<<20)
	url := dataURL("image/png", picture)
	item := `{"role":"user","content":[{"type":"input_text","text":"Which tree?"},{"type":"input_image","detail":"high","image_url":"` + url + `"}]}`
	given := func() {
		t.Helper()
		check.Has(t, "the model was given", a.prompt(), `{"type":"image_url","image_url":{"url":"`+url+`","detail":"high"}}`)
	}
	first := a.create(`{"model":"wood","input":[` + item + `]}`)
	given()
	n := nodeOf(t, first.ID)
	in := wire.ConversationID(n.Conversation)
	question := a.message(n.Conversation.String(), a.message(n.Conversation.String(), n.Node.String()).ParentID.String())
	const link = `{"role":"user","content":[{"type":"text","text":"Which tree?"},{"type":"image_url","image_url":{"url":"coppice:attachment/%x","detail":"high"}}]}`
	check.Equal(t, "the question", string(question.Body), fmt.Sprintf(link, sha256.Sum256(picture)))
	check.That(t, a.attached("acme", picture) && !a.attached("other", picture), "the picture is not the tenant's alone")
	back := fmt.Sprintf(`{"type":"input_text","text":"Which tree?"},{"type":"input_image","image_url":"%s","detail":"high"}`, url)
	for _, path := range []string{"/responses/" + first.ID + "/input_items", "/conversations/" + in + "/items", "/conversations/" + in + "/items/" + a.itemIDs(in, "asc", 20)[0]} {
		a.tells(200, "GET", path, "", back)
	}
	// The whole history without ids goes on where the response is.
	second := a.create(`{"model":"wood","input":[` + item + `,` + says("assistant", "Hazel.") + `,` + says("user", "Sure?") + `]}`)
	a.grew(second, 4, 4)
	given()
	a.ask(200, "acme", "DELETE", "/conversations/"+in, "")
	check.Equal(t, "that the picture outlasts its conversation", a.attached("acme", picture), false)
}

// Models of chat completions get the client's bytes of a picture, recorded or not.
func TestLargePictureOfACompletion(t *testing.T) {
	t.Parallel()
	check.Large(t)
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Hazel."))
	picture := pictureOf(t, 1<<20)
	asks := `{ "role":"user","content":[{"type":"image_url","image_url":{"url":"` + dataURL("image/jpg", picture) + `"}}]}` // which it isn't
	var first completion
	for _, members := range []string{"", store} {
		first = a.complete("acme", chatBody(members, asks))
		if got, recorded := a.prompt(), members != ""; got != asks || (first.conversation != "") != recorded || a.attached("acme", picture) != recorded {
			t.Errorf("%s the model was given %.300s, stored %t", members, got, a.attached("acme", picture))
		}
	}
	want := `"content":[{"type":"image_url","image_url":{"url":"` + dataURL("image/png", picture) + `"}}]` // by its bytes
	// What a client read it sends again, and it is the same history.
	second := a.complete("acme", chatBody(store, `{"role":"user",`+want+`}`, said("assistant", "Hazel."), said("user", "Sure?")))
	check.Equal(t, "messages", a.messages(first.conversation), 4)
	check.Equal(t, "the conversation", second.conversation, first.conversation)
}

// TestItemsWithPictures holds that items may have large pictures and files wherever items are
// taken, the output of a call too, and that a page ends with the message that fills it.
func TestItemsWithPictures(t *testing.T) {
	t.Parallel()
	check.Large(t)
	a := newAPI(t)
	var urls, all []string
	for i := range 3 {
		urls = append(urls, dataURL("image/png", pictureOf(t, 9<<19+i)))
		all = append(all, `{"role":"user","content":[{"type":"input_image","image_url":"`+urls[i]+`"}]}`)
	}
	urls[1] = dataURL("text/plain", bytes.Repeat([]byte("hazel\n"), 150_000))
	all[1] = `{"role":"user","content":[{"type":"input_file","filename":"hazel.txt","file_data":"` + urls[1] + `"}]}`
	id, native := a.conversation(`{"items":[` + all[0] + "," + all[1] + `]}`)
	all[2] = `{"type":"function_call","call_id":"c","name":"see","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"` + urls[2] + `"}]}`
	a.tells(200, "POST", "/conversations/"+id+"/items", `{"items":[`+all[2]+`]}`, urls[2])
	var pages int
	var got strings.Builder
	for after, more := "", true; more; pages++ {
		body, _ := a.ask(200, "acme", "GET", "/conversations/"+id+"/items?order=asc"+after, "")
		var p itemPage
		_ = json.Unmarshal([]byte(body), &p) // an output has no content, but a list
		got.WriteString(body)
		after, more = "&after="+*p.LastID, p.HasMore
	}
	for i, url := range urls {
		_, data, _ := strings.Cut(url, ";base64")
		check.Equal(t, fmt.Sprintf("picture %d comes back", i), strings.Count(got.String(), data+`"`), 1)
	}
	check.Equal(t, "messages", a.treeSize(native), 4)
	check.Equal(t, "pages", pages, 2)
}

// What can't be an attachment is refused by its place, and leaves no conversation.
func TestPictureRefused(t *testing.T) {
	t.Parallel()
	check.Large(t)
	a := newAPI(t)
	a.store = tree.New(a.pool, tree.WithLimits(tree.Limits{AttachmentBytes: 3 << 19}))
	a.start()
	fine := dataURL("image/png", pictureOf(t, 1<<20))
	picture := func(url string) string { return `{"type":"input_image","image_url":"` + url + `"}` }
	for _, test := range []struct {
		status            int
		model, part, code string
	}{
		{413, "wood", picture(dataURL("image/png", pictureOf(t, 3<<19))), "attachment_too_large"},
		{400, "wood", picture(dataURL("image/heic", make([]byte, 1<<20))), "unsupported_attachment"},
		{400, "wood", picture("data:image/png;base64,====" + strings.Repeat("A", 2<<20)), "invalid_value"},
		{413, "wood", picture("data:image/svg+xml,%3Csvg%3E" + strings.Repeat("A", 2<<20)), "message_too_large"},
		{400, "wood", `{"type":"input_file","filename":"a.png","file_data":"` + fine + `"}`, ""},
		{404, "none", picture(fine), "model_not_found"},
	} {
		item := `{"role":"user","content":[{"type":"input_text","text":"x"},` + test.part + `]}`
		bodies := map[string]string{"/responses": `{"model":"` + test.model + `","input":[` + item + `]}`}
		if test.model == "wood" {
			bodies["/conversations"] = `{"items":[` + item + `]}`
		}
		for path, body := range bodies {
			if got, _ := a.ask(test.status, "acme", "POST", path, body); !strings.Contains(got, test.code) || test.status != 404 && !strings.Contains(got, `"param":"i`) {
				t.Errorf("%s %.60s: %s", path, test.part, got)
			}
		}
	}
	image := `{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"` + dataURL("image/heic", make([]byte, 1<<20)) + `"}}]}`
	a.tells(400, "POST", "/chat/completions", chatBody(store, said("user", "hi"), said("assistant", "Hi."), image), `"param":"messages[2].content[1]"`)
	n := len(a.listed("acme"))
	check.That(t, n == 0 && !a.attached("acme", pictureOf(t, 1<<20)), "refused requests left %d conversations, or the picture", n)
}
