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
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/attach/pdf/pdftest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// pictureOf is a PNG of at least so many bytes.
func pictureOf(t testing.TB, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), make([]byte, size)...)
}

func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// attached tells whether a tenant has an attachment with these bytes.
func (a *api) attached(tenant string, data []byte) bool {
	a.t.Helper()
	_, got, err := a.store.ForTenant(tenant).Attachment(a.t.Context(), sha256.Sum256(data))
	if err != nil && !errors.Is(err, fault.NotFound) {
		a.t.Fatal(err)
	}
	return err == nil && bytes.Equal(got, data)
}

// bodies are the messages of a response's or completion's conversation, as they are
// stored.
func (a *api) bodies(conversation uuid.UUID) (all []string) {
	a.t.Helper()
	for n, err := range a.store.ForTenant("acme").Tree(a.t.Context(), conversation, 0) {
		if err != nil {
			a.t.Fatal(err)
		}
		m, err := a.store.ForTenant("acme").Message(a.t.Context(), conversation, n.ID)
		if err != nil {
			a.t.Fatal(err)
		}
		all = append(all, string(m.Body))
	}
	return all
}

// TestLargePicture holds that a picture of a response which is too large for a
// message is stored beside it, that the model and the client get it as it was sent,
// and that the same history is recognized.
func TestLargePicture(t *testing.T) {
	t.Parallel()
	a := setup{script: slices.Repeat([]llmtest.Behaviour{llmtest.Answer("Hazel.")}, 3)}.serve(t)
	picture := pictureOf(t, 1<<20)
	url := dataURL("image/png", picture)
	item := `{"role":"user","content":[{"type":"input_text","text":"Which tree?"},{"type":"input_image","detail":"high","image_url":"` + url + `"}]}`
	first := a.create(`{"model":"wood","input":[` + item + `]}`)
	shown := `{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}}`
	if got := a.prompt(); !strings.Contains(got, shown) {
		t.Errorf("the model was given %.300s", got)
	}
	in := nodeOf(t, first.ID).Conversation
	link := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Which tree?"},{"type":"image_url","image_url":{"url":"coppice:attachment/%x","detail":"high"}}]}`, sha256.Sum256(picture))
	if got := a.bodies(in); !slices.Contains(got, link) || len(got) != 2 {
		t.Errorf("stored is %.500q", got)
	}
	if !a.attached("acme", picture) || a.attached("other", picture) {
		t.Error("the picture is not the tenant's alone")
	}
	const back = `{"type":"input_text","text":"Which tree?"},{"type":"input_image","image_url":"%s","detail":"high"}`
	for _, path := range []string{"/responses/" + first.ID + "/input_items", "/conversations/" + openai.ConversationID(in) + "/items"} {
		if got, _ := a.ask(200, "acme", "GET", path, ""); !strings.Contains(got, fmt.Sprintf(back, url)) {
			t.Errorf("%s is %.500s", path, got)
		}
	}
	items := a.itemIDs(openai.ConversationID(in), "asc", 20)
	if got, _ := a.ask(200, "acme", "GET", "/conversations/"+openai.ConversationID(in)+"/items/"+items[0], ""); !strings.Contains(got, fmt.Sprintf(back, url)) {
		t.Errorf("the item is %.500s", got)
	}
	// The whole history without ids goes on where the response is.
	second := a.create(`{"model":"wood","input":[` + item + `,` + says("assistant", "Hazel.") + `,` + says("user", "Sure?") + `]}`)
	if branch, n := a.said(second); n != 4 || len(branch) != 4 {
		t.Errorf("%d messages: %.300q", n, branch)
	}
	if got := a.prompt(); !strings.Contains(got, shown) {
		t.Errorf("the model was given %.300s", got)
	}
	a.create(`{"model":"wood","previous_response_id":"` + second.ID + `","input":"Really?"}`)
	if got := a.prompt(); !strings.Contains(got, shown) {
		t.Errorf("the model was given %.300s", got)
	}
	a.ask(200, "acme", "DELETE", "/conversations/"+openai.ConversationID(in), "")
	if a.attached("acme", picture) {
		t.Error("the picture outlasts its conversation")
	}
}

// TestLargePictureOfACompletion holds the same of chat completions, whose models
// get the client's bytes.
func TestLargePictureOfACompletion(t *testing.T) {
	t.Parallel()
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Answer("Hazel.")}, 4)...)
	picture := pictureOf(t, 1<<20)
	url := dataURL("image/jpg", picture) // which it isn't
	asks := `{ "role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`
	unrecorded := a.complete("acme", chatBody("", asks))
	if got := a.prompt(); got != asks || unrecorded.conversation != "" || a.attached("acme", picture) {
		t.Errorf("the model was given %.300s, stored %v", got, a.attached("acme", picture))
	}
	first := a.complete("acme", chatBody(store, asks))
	if got := a.prompt(); got != asks {
		t.Errorf("the model was given %.300s", got)
	}
	second := a.complete("acme", chatBody(store, asks, said("assistant", "Hazel."), said("user", "Sure?")))
	if n := a.messages("acme", first.conversation); n != 4 || second.conversation != first.conversation || !a.attached("acme", picture) {
		t.Errorf("%d messages in %s, and %s", n, first.conversation, second.conversation)
	}
	want := `"content":[{"type":"image_url","image_url":{"url":"` + dataURL("image/png", picture) + `"}}]` // by its bytes
	if got, _ := a.ask(200, "acme", "GET", "/chat/completions/"+second.ID+"/messages", ""); !strings.Contains(got, want) {
		t.Errorf("the messages are %.500s", got)
	}
	// What a client read it sends again, and it is the same history.
	a.complete("acme", chatBody(store, `{"role":"user",`+want+`}`, said("assistant", "Hazel."), said("user", "Sure?")))
	if n := a.messages("acme", first.conversation); n != 5 {
		t.Errorf("%d messages, want one more answer", n)
	}
	for _, c := range []completion{second, first} {
		a.ask(200, "acme", "DELETE", "/chat/completions/"+c.ID, "")
	}
	if !a.attached("acme", picture) {
		t.Error("the picture went before the last message that names it")
	}
}

// TestUnstoredPicture holds that a request which stores nothing gives the model
// what the client sent, whatever it is.
func TestUnstoredPicture(t *testing.T) {
	t.Parallel()
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Answer("Hazel.")}, 2)...)
	picture := pictureOf(t, 1<<20)
	for _, url := range []string{dataURL("image/png", picture), dataURL("image/heic", make([]byte, 1<<20))} {
		item := `{"role":"user","content":[{"type":"input_image","image_url":"` + url + `"}]}`
		a.create(`{"model":"wood","store":false,"input":[` + item + `]}`)
		if got := a.prompt(); !strings.Contains(got, `{"type":"image_url","image_url":{"url":"`+url+`"}}`) {
			t.Errorf("the model was given %.300s", got)
		}
		if got, _ := a.ask(200, "acme", "POST", "/responses/input_tokens", `{"model":"wood","input":[`+item+`]}`); strings.Contains(got, `"input_tokens":0`) {
			t.Errorf("%s", got)
		}
		if got, _ := a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","input":[`+item+`]}`); !strings.Contains(got, url) {
			t.Errorf("compacted it is %.300s", got)
		}
	}
	if a.attached("acme", picture) || a.conversations("acme") != 0 {
		t.Error("it was stored")
	}
}

// TestLargeFile holds that the model reads the text of a large file, and the client
// gets the file back.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("In winter."))
	file := append(pdftest.Pages("Coppiced hazel is cut in winter."), bytes.Repeat([]byte("% hazel\n"), 1<<17)...)
	sent := `{"type":"input_file","filename":"hazel.pdf","file_data":"` + dataURL("application/pdf", file) + `"}`
	r := a.create(`{"model":"wood","input":[{"role":"user","content":[{"type":"input_text","text":"When?"},` + sent + `]}]}`)
	if got := a.prompt(); !strings.Contains(got, `"[file hazel.pdf]\nCoppiced hazel is cut in winter."`) {
		t.Errorf("the model was given %.300s", got)
	}
	if got, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID+"/input_items", ""); !strings.Contains(got, sent) {
		t.Errorf("the input is %.300s", got)
	}
}

// TestItemsWithPictures holds that items may have large pictures wherever items are
// taken, the output of a call too, and that a page ends before it brings too much.
func TestItemsWithPictures(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("Hazel."))
	var urls []string
	var all []string
	for i := range 3 {
		url := dataURL("image/png", pictureOf(t, 7<<19+i))
		urls = append(urls, url)
		all = append(all, `{"role":"user","content":[{"type":"input_image","image_url":"`+url+`"}]}`)
	}
	id, native := a.conversation(`{"items":[` + all[0] + `]}`)
	for i := 1; i < 3; i++ {
		if got, _ := a.ask(200, "acme", "POST", "/conversations/"+id+"/items", `{"items":[`+all[i]+`]}`); !strings.Contains(got, urls[i]) {
			t.Errorf("added is %.300s", got)
		}
	}
	var got []string
	for after, more := "", true; more; {
		body, _ := a.ask(200, "acme", "GET", "/conversations/"+id+"/items?order=asc"+after, "")
		var p struct {
			Data []struct {
				Content []struct {
					URL string `json:"image_url"`
				}
			}
			LastID string `json:"last_id"`
			More   bool   `json:"has_more"`
		}
		if err := json.Unmarshal([]byte(body), &p); err != nil || len(p.Data) == 0 || len(p.Data) > 2 {
			t.Fatalf("%d items, %v: %.300s", len(p.Data), err, body)
		}
		for _, item := range p.Data {
			got = append(got, item.Content[0].URL)
		}
		after, more = "&after="+p.LastID, p.More
	}
	if !slices.Equal(got, urls) {
		t.Errorf("%d pictures come back, or others", len(got))
	}
	call := `{"type":"function_call","call_id":"c","name":"see","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"` + dataURL("image/png", pictureOf(t, 1<<20)) + `"}]}`
	if back, _ := a.ask(200, "acme", "POST", "/conversations/"+id+"/items", `{"items":[`+call+`,`+output+`]}`); !strings.Contains(back, dataURL("image/png", pictureOf(t, 1<<20))) {
		t.Errorf("the output is %.300s", back)
	}
	if n := a.treeSize(native); n != 5 {
		t.Errorf("%d messages, want 5", n)
	}
}

// TestPictureRefused holds that what can't be an attachment is refused by its place,
// and leaves no conversation.
func TestPictureRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.store = tree.New(a.pool, tree.WithLimits(tree.Limits{AttachmentBytes: 3 << 19}))
	a.serve(openai.Recognition{})
	fine := pictureOf(t, 1<<20)
	for _, test := range []struct {
		status    int
		url, code string
	}{
		{413, dataURL("image/png", pictureOf(t, 3<<19)), "attachment_too_large"},
		{400, dataURL("image/heic", make([]byte, 1<<20)), "unsupported_attachment"},
		{400, "data:image/png;base64,====" + strings.Repeat("A", 2<<20), "invalid_value"},
		{413, "data:image/svg+xml,%3Csvg%3E" + strings.Repeat("A", 2<<20), "message_too_large"},
	} {
		part := `{"type":"image_url","image_url":{"url":"` + test.url + `"}}`
		got, _ := a.ask(test.status, "acme", "POST", "/chat/completions", chatBody(store, said("user", "hi"), said("assistant", "Hi."), `{"role":"user","content":[{"type":"text","text":"x"},`+part+`]}`))
		if !strings.Contains(got, `"param":"messages[2]`) || !strings.Contains(got, `"code":"`+test.code+`"`) || test.code != "message_too_large" && !strings.Contains(got, `messages[2].content[1]"`) {
			t.Errorf("%.60s: %s", test.url, got)
		}
		item := `{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"` + test.url + `"}]}`
		for path, body := range map[string]string{"/responses": `{"model":"wood","input":[` + item + `]}`, "/conversations": `{"items":[` + item + `]}`} {
			if got, _ := a.ask(test.status, "acme", "POST", path, body); !strings.Contains(got, `"code":"`+test.code+`"`) || !strings.Contains(got, `"param":"i`) {
				t.Errorf("%s %.60s: %s", path, test.url, got)
			}
		}
	}
	mixed := `{"type":"input_file","filename":"a.png","file_data":"` + dataURL("image/png", fine) + `"}`
	if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":[{"role":"user","content":[`+mixed+`]}]}`); !strings.Contains(got, `"param":"input[0].content[0]"`) {
		t.Errorf("%s", got)
	}
	a.ask(404, "acme", "POST", "/responses", `{"model":"none","input":[{"role":"user","content":[{"type":"input_image","image_url":"`+dataURL("image/png", fine)+`"}]}]}`)
	if n := a.conversations("acme"); n != 0 || a.attached("acme", fine) {
		t.Errorf("refused requests left %d conversations, and the picture %t", n, a.attached("acme", fine))
	}
}
