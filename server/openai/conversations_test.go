package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// An itemPage is what a test reads of a list of items.
type itemPage struct {
	Object string
	Data   []struct {
		ID, Type, Role, Name, Status string
		CallID                       string `json:"call_id"`
		Content                      []struct{ Type, Text string }
	}
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// says shows the items in short.
func (p itemPage) says() string {
	var all []string
	for _, item := range p.Data {
		switch item.Type {
		case "message":
			text := item.Role + ":"
			for _, part := range item.Content {
				text += part.Text
			}
			all = append(all, text)
		default:
			all = append(all, item.Type+":"+item.CallID)
		}
	}
	return strings.Join(all, " ")
}

func (a *api) items(conversation, query string) (p itemPage) {
	a.t.Helper()
	got, _ := a.ask(200, "acme", "GET", "/conversations/"+conversation+"/items"+query, "")
	if err := json.Unmarshal([]byte(got), &p); err != nil || p.Object != "list" {
		a.t.Fatalf("%s: %v", got, err)
	}
	return p
}

// itemIDs reads all items page by page, as the SDKs do: each next page begins
// after the last item of the one before.
func (a *api) itemIDs(conversation, order string, limit int) (ids []string) {
	a.t.Helper()
	query := fmt.Sprintf("?limit=%d&order=%s", limit, order)
	for after := ""; ; {
		p := a.items(conversation, query+after)
		for _, item := range p.Data {
			ids = append(ids, item.ID)
		}
		if len(p.Data) > limit || p.HasMore && len(p.Data) < limit {
			a.t.Fatalf("a page of %d has %d items", limit, len(p.Data))
		}
		if !p.HasMore {
			return ids
		}
		after = "&after=" + url.QueryEscape(*p.LastID)
	}
}

// conversation makes one and gives both its ids.
func (a *api) conversation(body string) (id string, native uuid.UUID) {
	a.t.Helper()
	got, _ := a.ask(200, "acme", "POST", "/conversations", body)
	var c struct{ ID string }
	err := json.Unmarshal([]byte(got), &c)
	if err == nil {
		native, err = openai.ParseConversationID(c.ID)
	}
	if err != nil {
		a.t.Fatalf("%s: %v", got, err)
	}
	return c.ID, native
}

func (a *api) add(conversation, items string) (p itemPage) {
	a.t.Helper()
	got, _ := a.ask(200, "acme", "POST", "/conversations/"+conversation+"/items", `{"items":[`+items+`]}`)
	if err := json.Unmarshal([]byte(got), &p); err != nil {
		a.t.Fatalf("%s: %v", got, err)
	}
	return p
}

// treeSize counts the messages of the whole tree.
func (a *api) treeSize(id uuid.UUID) (n int) {
	a.t.Helper()
	for _, err := range a.store.ForTenant("acme").Tree(a.t.Context(), id, 0) {
		if err != nil {
			a.t.Fatal(err)
		}
		n++
	}
	return n
}

func (a *api) setHead(id, head uuid.UUID) {
	a.t.Helper()
	if _, err := a.store.ForTenant("acme").UpdateConversation(a.t.Context(), id, tree.ConversationUpdate{HeadID: head}); err != nil {
		a.t.Fatal(err)
	}
}

func says(role, text string) string {
	return fmt.Sprintf(`{"type":"message","role":%q,"content":%q}`, role, text)
}

func TestConversations(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "What  is\ta coppice?\nI wonder.") + `],"metadata":{"topic":"trees"}}`)
	store := a.store.ForTenant("acme")
	c, err := store.Conversation(t.Context(), native)
	if err != nil || c.Title != "What is a coppice?" || string(c.Metadata) != `{"topic":"trees"}` {
		t.Errorf("natively it is %q, %s, %v", c.Title, c.Metadata, err)
	}
	list, err := store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != native {
		t.Errorf("the native list has %+v, %v", list.Data, err)
	}
	want := fmt.Sprintf(`{"id":%q,"object":"conversation","created_at":%d,"metadata":{"topic":"trees"}}`, id, c.CreatedAt.Unix())
	got, header := a.ask(200, "acme", "GET", "/conversations/"+id, "")
	if got != want || header.Get("X-Coppice-Conversation-Id") != native.String() || header.Get("X-Coppice-Head-Id") != c.HeadID.String() {
		t.Errorf("%s, want %s; %v", got, want, header)
	}

	// An update changes the pairs alone: what a native client wrote stays.
	if _, err := store.UpdateConversation(t.Context(), native, tree.ConversationUpdate{Metadata: []byte(`{"topic":"trees","old":"x","colours":["red"]}`)}); err != nil {
		t.Fatal(err)
	}
	if got, _ := a.ask(200, "acme", "POST", "/conversations/"+id, `{"metadata":{"topic":"woods"}}`); !strings.Contains(got, `"metadata":{"topic":"woods"}`) {
		t.Errorf("%s", got)
	}
	if c, err = store.Conversation(t.Context(), native); err != nil || string(c.Metadata) != `{"colours":["red"],"topic":"woods"}` {
		t.Errorf("the metadata is %s, %v", c.Metadata, err)
	}

	added := a.add(id, says("assistant", "A wood.")+`,{"role":"user","content":[{"type":"input_text","text":"How old?"}]},{"type":"function_call","call_id":"c1","name":"age","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"900"}`)
	if got := added.says(); got != "assistant:A wood. user:How old? function_call:c1 function_call_output:c1" || added.HasMore || *added.FirstID != added.Data[0].ID || *added.LastID != added.Data[3].ID {
		t.Errorf("added %s", got)
	}
	forward := a.items(id, "?order=asc")
	if got := forward.says(); got != "user:What  is\ta coppice?\nI wonder. "+added.says() {
		t.Errorf("the items are %s", got)
	}
	if got := a.items(id, "?limit=2&include[]=message.input_image.image_url").says(); got != "function_call_output:c1 function_call:c1" {
		t.Errorf("the last two items are %s", got)
	}
	for _, item := range forward.Data {
		got, header := a.ask(200, "acme", "GET", "/conversations/"+id+"/items/"+item.ID, "")
		if !strings.Contains(got, `"id":"`+item.ID+`"`) || header.Get("X-Coppice-Head-Id") == "" {
			t.Errorf("%s: %s", item.ID, got)
		}
	}

	got, header = a.ask(200, "acme", "DELETE", "/conversations/"+id, "")
	if got != `{"id":"`+id+`","object":"conversation.deleted","deleted":true}` || header.Get("X-Coppice-Conversation-Id") != native.String() {
		t.Errorf("%s", got)
	}
	for _, path := range []string{"", "/items", "/items/" + forward.Data[0].ID} {
		a.ask(404, "acme", "GET", "/conversations/"+id+path, "")
	}
	if page, err := store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{}); err != nil || len(page.Data) != 0 {
		t.Errorf("%d conversations are left, %v", len(page.Data), err)
	}
}

// An empty conversation has items of no kind, and takes its title from the first
// that is added, or from the first turn.
func TestEmptyConversations(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("Hello."))
	for _, body := range []string{``, `{}`, `{"items":[]}`, `{"items":null,"metadata":null,"unknown":1}`} {
		id, native := a.conversation(body)
		if p := a.items(id, ""); len(p.Data) != 0 || p.HasMore || p.FirstID != nil {
			t.Errorf("%s: %+v", body, p)
		}
		if body == `{}` {
			a.create(`{"model":"wood","input":"Good morning","conversation":{"id":"` + id + `"}}`)
		} else {
			a.add(id, says("user", "Good morning"))
		}
		if c, err := a.store.ForTenant("acme").Conversation(t.Context(), native); err != nil || c.Title != "Good morning" || c.HeadID == uuid.Nil {
			t.Errorf("%s: the title is %q, %v", body, c.Title, err)
		}
	}
}

func TestConversationsRefuse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "Mine.") + `]}`)
	other, _ := a.conversation(`{"items":[` + says("user", "Elsewhere.") + `]}`)
	item, elsewhere := a.items(id, "").Data[0].ID, a.items(other, "").Data[0].ID
	at := "/conversations/" + id
	unknown := "/conversations/" + openai.ConversationID(uuid.Must(uuid.NewV7()))
	gone := openai.ItemID{NodeID: openai.NodeID{Conversation: native, Node: uuid.Must(uuid.NewV7())}, Kind: openai.KindMessage, Ordinal: 1}.String()
	many := strings.TrimSuffix(strings.Repeat(says("user", "x")+",", 21), ",")
	for _, test := range []struct {
		status                   int
		method, path, body, want string
	}{
		{400, "POST", "/conversations", `{"items":[` + many + `]}`, `"param":"items","code":"invalid_value"`},
		{400, "POST", "/conversations", `{"items":"hello"}`, `"param":"items","code":"invalid_type"`},
		{400, "POST", "/conversations", `{"items":[{"role":"user","content":""}]}`, `"param":"items[0].content"`},
		{400, "POST", "/conversations", `{"items":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, `"param":"items"`},
		{400, "POST", "/conversations", `{"items":[{"id":"` + gone + `"}]}`, `"param":"items","code":"item_not_found"`},
		{400, "POST", "/conversations", `{"items":[{"type":"compaction","encrypted_content":"x"}]}`, `"param":"items[0]"`},
		{400, "POST", "/conversations", `{"metadata":{"a":1}}`, `"param":"metadata.a"`},
		{400, "POST", at, `{}`, `"param":"metadata","code":"missing_required_parameter"`},
		{400, "POST", at + "/items", `{"items":[]}`, `"param":"items","code":"missing_required_parameter"`},
		{400, "POST", at + "/items", `{"items":[{"type":"computer_call"}]}`, `"param":"items[0].type"`},
		{400, "GET", at + "/items?limit=101", ``, `"param":"limit"`},
		{400, "GET", at + "/items?order=up", ``, `"param":"order"`},
		{400, "GET", at + "/items?after=" + gone, ``, `"param":"after"`},
		{400, "GET", at + "/items?order=asc&after=" + gone, ``, `"param":"after"`},
		{400, "GET", at + "/items?after=" + elsewhere, ``, `"param":"after"`},
		{400, "GET", at + "/items?after=x", ``, `"param":"after"`},
		{404, "GET", at + "/items/" + gone, ``, "Item with id '" + gone},
		{404, "GET", at + "/items/" + elsewhere, ``, "Item with id"},
		{404, "GET", at + "/items/" + item[:len(item)-1] + "2", ``, "Item with id"},
		{404, "GET", at + "/items/x", ``, "Item with id 'x' not found."},
		{404, "DELETE", at + "/items/" + elsewhere, ``, "Item with id"},
		{404, "GET", unknown, ``, "Conversation with id"},
		{404, "POST", unknown, `{"metadata":{}}`, "Conversation with id"},
		{404, "DELETE", unknown, ``, "Conversation with id"},
		{404, "GET", unknown + "/items", ``, "Conversation with id"},
		{404, "POST", unknown + "/items", `{"items":[` + says("user", "x") + `]}`, "Conversation with id"},
		{404, "GET", "/conversations/conv_x", ``, "Conversation with id 'conv_x' not found."},
		{405, "GET", "/conversations", ``, `"code":"method_not_allowed"`}, // there is no such list
	} {
		got, header := a.ask(test.status, "acme", test.method, test.path, test.body)
		if !strings.Contains(got, test.want) || !strings.HasPrefix(got, `{"error":{"message":`) || header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s %s: %s, want %s", test.method, test.path, test.body, got, test.want)
		}
	}
	// Another tenant gets the answers of ids that nobody has, and changes nothing.
	for _, test := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"POST", "", `{"metadata":{}}`}, {"DELETE", "", ""}, {"GET", "/items", ""}, {"POST", "/items", `{"items":[` + says("user", "x") + `]}`},
		{"GET", "/items/" + item, ""}, {"DELETE", "/items/" + item, ""},
	} {
		foreign, _ := a.ask(404, "other", test.method, at+test.path, test.body)
		none, _ := a.ask(404, "other", test.method, unknown+test.path, test.body)
		if strings.ReplaceAll(foreign, id, "") != strings.ReplaceAll(none, strings.TrimPrefix(unknown, "/conversations/"), "") {
			t.Errorf("%s %s: %s, and of an unknown one %s", test.method, test.path, foreign, none)
		}
	}
	if got, _ := a.ask(400, "other", "POST", "/conversations", `{"items":[{"id":"`+item+`"}]}`); !strings.Contains(got, `"code":"item_not_found"`) {
		t.Errorf("another tenant refers to an item: %s", got)
	}
	if n := a.treeSize(native); n != 1 {
		t.Errorf("the conversation has %d messages", n)
	}
	if list, err := a.store.ForTenant("acme").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{}); err != nil || len(list.Data) != 2 {
		t.Errorf("refused requests left %d conversations: %v", len(list.Data), err)
	}
}

// TestParallelTurns holds that turns on one conversation at a time are siblings,
// that none sees another, and that the conversation goes on with one of them.
func TestParallelTurns(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{true, false} {
		const turns = 20
		gate := make(chan struct{})
		a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.After(gate, llmtest.Echo())}, turns)...)
		body := `{}`
		if begun {
			body = `{"items":[` + says("user", "before") + `]}`
		}
		id, native := a.conversation(body)
		store := a.store.ForTenant("acme")
		c, err := store.Conversation(t.Context(), native)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		for i := range turns {
			go func() {
				req, _ := http.NewRequestWithContext(t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(fmt.Sprintf(`{"model":"wood","input":"turn %d","conversation":%q}`, i, id)))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer "+a.secrets["acme"])
				res, err := http.DefaultClient.Do(req)
				if err == nil {
					var r response
					if err = json.NewDecoder(res.Body).Decode(&r); err == nil && r.Output[0].Content[0].Text != fmt.Sprint("turn ", i) {
						err = fmt.Errorf("turn %d is answered %+v", i, r)
					}
					res.Body.Close()
				}
				done <- err
			}()
		}
		for len(a.upstream.Requests()) < turns {
			select {
			case err := <-done:
				t.Fatalf("a turn ended before its answer: %v", err)
			case <-time.After(2 * time.Millisecond):
			}
		}
		close(gate)
		for range turns {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		children, err := store.Children(t.Context(), native, c.HeadID, tree.Paging{Limit: 100})
		if err != nil || len(children.Data) != turns {
			t.Errorf("begun %t: %d turns, %v; want %d siblings", begun, len(children.Data), err, turns)
		}
		for _, prompt := range a.upstream.Requests() {
			if want := map[bool]int{true: 2, false: 1}[begun]; len(prompt.Messages) != want {
				t.Errorf("begun %t: the model was given %s", begun, prompt.Messages)
			}
		}
		if got := a.items(id, "?order=asc"); len(got.Data) != map[bool]int{true: 3, false: 2}[begun] || !strings.Contains(got.says(), "assistant:turn ") {
			t.Errorf("begun %t: the conversation goes on with %s", begun, got.says())
		}
		if n := a.treeSize(native); n != 2*turns+map[bool]int{true: 1, false: 0}[begun] {
			t.Errorf("begun %t: the tree has %d messages", begun, n)
		}
	}
}

// A body of the surface may have 32 MiB, and not a byte more.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	items := strings.TrimSuffix(strings.Repeat(says("user", strings.Repeat("hazel ", 170_000))+",", 6), ",")
	id, _ := a.conversation(`{"items":[` + items + `]}`)
	if got := a.itemIDs(id, "desc", 7); len(got) != 6 {
		t.Errorf("%d items", len(got))
	}
	body := `{"items":[],"unknown":"` + strings.Repeat("x", openai.MaxBody-25) + `"}`
	if len(body) != openai.MaxBody {
		t.Fatal(len(body))
	}
	a.conversation(body)
	got, header := a.ask(413, "acme", "POST", "/conversations", body+" ")
	if !strings.Contains(got, `"code":"body_too_large"`) || header.Get("X-Should-Retry") != "false" {
		t.Errorf("%s", got)
	}
	a = newAPIWith(t, openai.Recognition{MaxBody: 12})
	a.conversation(`{"items":[]}`)
	a.ask(413, "acme", "POST", "/conversations", `{"items":[]} `)
}
