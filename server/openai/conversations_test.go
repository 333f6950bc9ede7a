package openai_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// An itemPage is what a test reads of a list of items.
type itemPage struct {
	Data []struct {
		ID, Type, Role string
		CallID         string `json:"call_id"`
		Content        []struct{ Text string }
	}
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// says shows the items in short.
func (p itemPage) says() string {
	var all []string
	for _, item := range p.Data {
		text := item.Type + ":" + item.CallID
		if item.Type == "message" {
			text = item.Role + ":"
		}
		for _, part := range item.Content {
			text += part.Text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (a *api) items(conversation, query string) (p itemPage) {
	a.t.Helper()
	check.JSON(a.t, a.tells(200, "GET", "/conversations/"+conversation+"/items"+query, "", `"object":"list"`), &p)
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
		check.Need(a.t, len(p.Data) <= limit && (!p.HasMore || len(p.Data) >= limit), "a page of %d has %d items", limit, len(p.Data))
		if !p.HasMore {
			return ids
		}
		after = "&after=" + url.QueryEscape(*p.LastID)
	}
}

// conversation makes one and gives both its ids.
func (a *api) conversation(body string) (id string, native uuid.UUID) {
	a.t.Helper()
	id = a.get("POST", "/conversations", body)["id"].(string)
	return id, check.Must(wire.ParseConversationID(id))(a.t)
}

func (a *api) add(conversation, items string) (p itemPage) {
	a.t.Helper()
	check.JSON(a.t, a.tells(200, "POST", "/conversations/"+conversation+"/items", `{"items":[`+items+`]}`), &p)
	return p
}

func says(role, text string) string {
	return fmt.Sprintf(`{"type":"message","role":%q,"content":%q}`, role, text)
}

func TestConversations(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "What  is\ta coppice?\nI wonder.") + `],"metadata":{"topic":"trees"}}`)
	store := a.store.ForTenant("acme")
	c := a.stored(native)
	check.Equal(t, "natively", c.Title+" "+string(c.Metadata), `What is a coppice? I wonder. {"topic":"trees"}`)
	list := a.listed("acme")
	check.That(t, len(list) == 1 && list[0].ID == native, "the native list has %+v", list)
	want := fmt.Sprintf(`{"id":%q,"object":"conversation","created_at":%d,"metadata":{"topic":"trees"}}`, id, c.CreatedAt.Unix())
	got, header := a.ask(200, "acme", "GET", "/conversations/"+id, "")
	check.That(t, got == want && header.Get("X-Coppice-Conversation-Id") == native.String() && header.Get("X-Coppice-Head-Id") == c.HeadID.String(),
		"%s, want %s; %v", got, want, header)

	// An update changes the pairs alone: what a native client wrote stays.
	check.Must(store.UpdateConversation(t.Context(), native, tree.ConversationUpdate{Metadata: []byte(`{"topic":"trees","old":"x","colours":["red"]}`)}))(t)
	a.tells(200, "POST", "/conversations/"+id, `{"metadata":{"topic":"woods"}}`, `"metadata":{"topic":"woods"}`)
	check.Equal(t, "the metadata", string(a.stored(native).Metadata), `{"colours":["red"],"topic":"woods"}`)

	added := a.add(id, says("assistant", "A wood.")+`,{"role":"user","content":[{"type":"input_text","text":"How old?"}]},{"type":"function_call","call_id":"c1","name":"age","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"900"}`)
	if got := added.says(); got != "assistant:A wood. user:How old? function_call:c1 function_call_output:c1" || added.HasMore || *added.FirstID != added.Data[0].ID || *added.LastID != added.Data[3].ID {
		t.Errorf("added %s", got)
	}
	forward := a.items(id, "?order=asc")
	check.Equal(t, "the items", forward.says(), "user:What  is\ta coppice?\nI wonder. "+added.says())
	check.Equal(t, "the last two items", a.items(id, "?limit=2&include[]=message.input_image.image_url").says(), "function_call_output:c1 function_call:c1")
	for _, item := range forward.Data {
		got, header := a.ask(200, "acme", "GET", "/conversations/"+id+"/items/"+item.ID, "")
		check.Has(t, "an item", got, `"id":"`+item.ID+`"`)
		check.Equal(t, "the head of an item", header.Get("X-Coppice-Head-Id"), a.stored(native).HeadID.String())
	}

	got, header = a.ask(200, "acme", "DELETE", "/conversations/"+id, "")
	check.Equal(t, "the answer", got, `{"id":"`+id+`","object":"conversation.deleted","deleted":true}`)
	check.Equal(t, "the conversation", header.Get("X-Coppice-Conversation-Id"), native.String())
	for _, path := range []string{"", "/items", "/items/" + forward.Data[0].ID} {
		a.ask(404, "acme", "GET", "/conversations/"+id+path, "")
	}
	check.Equal(t, "conversations", len(a.listed("acme")), 0)
}

// An empty conversation has items of no kind, and takes its title from the first
// that is added, or from the first turn.
func TestEmptyConversations(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("Hello."))
	for _, body := range []string{``, `{}`, `{"items":null,"metadata":null,"unknown":1}`} {
		id, native := a.conversation(body)
		p := a.items(id, "")
		check.That(t, len(p.Data) == 0 && !p.HasMore && p.FirstID == nil, "%s: %+v", body, p)
		if body == `{}` {
			for _, members := range []string{``, `"store":false,`, `"input":[{"type":"compaction_trigger"}],`} {
				a.tells(400, "POST", "/responses", `{"model":"wood",`+members+`"conversation":"`+id+`"}`, `"param":"input","code":"missing_required_parameter"`)
			}
			a.create(`{"model":"wood","input":"Good morning","conversation":{"id":"` + id + `"}}`)
		} else {
			a.add(id, says("user", "Good morning"))
		}
		c := a.stored(native)
		check.That(t, c.Title == "Good morning" && c.HeadID != uuid.Nil, "%s: the title is %q", body, c.Title)
	}
}

func TestConversationsRefuse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "Mine.") + `]}`)
	other, _ := a.conversation(`{"items":[` + says("user", "Elsewhere.") + `]}`)
	item, elsewhere := a.items(id, "").Data[0].ID, a.items(other, "").Data[0].ID
	at := "/conversations/" + id
	gone := wire.ItemID{NodeID: wire.NodeID{Conversation: native, Node: uuid.New()}, Kind: wire.KindMessage, Ordinal: 1}.String()
	a.refuses([]refusal{
		{400, "POST", "/conversations", `{"items":[{"role":"user","content":""}]}`, `"param":"items[0].content"`},
		{400, "POST", "/conversations", `{"items":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, `"param":"items"`},
		{400, "POST", "/conversations", `{"items":[{"id":"` + gone + `"}]}`, `"param":"items","code":"item_not_found"`},
		{400, "POST", "/conversations", `{"items":[{"type":"compaction","encrypted_content":"` + wire.Compaction{Text: "x"}.Content() + `"}]}`, `"param":"items[0]"`},
		{400, "POST", "/responses", `{"model":"wood","conversation":"` + id + `","input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, `"param":"input"`},
		{400, "POST", "/responses", `{"model":"wood","store":false,"conversation":"` + id + `","input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, `No tool call found`},
		{400, "POST", at, `{}`, `"param":"metadata","code":"missing_required_parameter"`},
		{400, "POST", at + "/items", `{"items":[]}`, `"param":"items","code":"missing_required_parameter"`},
		{400, "GET", at + "/items?limit=101", ``, `"param":"limit"`},
		{400, "GET", at + "/items?order=asc&after=" + gone, ``, `"param":"after"`},
		{400, "GET", at + "/items?after=" + elsewhere, ``, `"param":"after"`},
		{400, "GET", at + "/items?after=x", ``, `"param":"after"`},
		{404, "GET", at + "/items/" + gone, ``, "Item with id '" + gone},
		{404, "GET", at + "/items/" + elsewhere, ``, "Item with id"},
		{404, "GET", at + "/items/" + item[:len(item)-1] + "2", ``, "Item with id"},
		{404, "GET", at + "/items/x", ``, "Item with id 'x' not found."},
		{404, "DELETE", at + "/items/" + elsewhere, ``, "Item with id"},
		{404, "GET", "/conversations/conv_x", ``, "Conversation with id 'conv_x' not found."},
		{405, "GET", "/conversations", ``, `"code":"method_not_allowed"`}, // there is no such list
	})
	check.Equal(t, "what is stored", fmt.Sprint(a.everything()), "2 2")
}

// A body may have 32 MiB, or what the operator says, and not a byte more.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	check.Equal(t, "the most bytes", openai.MaxBody, 32<<20)
	a := newAPIWith(t, openai.Recognition{MaxBody: 3 << 20})
	const begin, end = `{"items":[],"unknown":"`, `"}`
	body := begin + strings.Repeat("x", 3<<20-len(begin)-len(end)) + end
	a.conversation(body)
	got, header := a.ask(413, "acme", "POST", "/conversations", body+" ")
	check.That(t, strings.Contains(got, `"code":"body_too_large"`) && header.Get("X-Should-Retry") == "false", "%s", got)
}

// TestNativeChangeMeanwhile holds that an update of a conversation's pairs, and items
// that give it a title, keep what a native client changes at the same moment.
func TestNativeChangeMeanwhile(t *testing.T) {
	t.Parallel()
	title := "Woods"
	for name, test := range map[string]struct {
		path, body      string
		meanwhile       tree.ConversationUpdate
		title, metadata string
	}{
		"metadata": {"", `{"metadata":{"topic":"woods"}}`, tree.ConversationUpdate{Metadata: []byte(`{"topic":"trees","colours":["red"]}`)}, "", `{"colours":["red"],"topic":"woods"}`},
		"title":    {"/items", `{"items":[` + says("user", "Good morning") + `]}`, tree.ConversationUpdate{Title: &title}, title, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			store := tree.New(pool).ForTenant("acme")
			c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
			check.NoError(t, err)
			var once sync.Once
			a := setup{pool: dbtest.AfterQuery(t, pool, "GetConversation", func() {
				once.Do(func() {
					if _, err := store.UpdateConversation(t.Context(), c.ID, test.meanwhile); err != nil {
						t.Error(err)
					}
				})
			})}.serve(t)
			a.ask(200, "acme", "POST", "/conversations/"+wire.ConversationID(c.ID)+test.path, test.body)
			c = a.stored(c.ID)
			check.Equal(t, "title and metadata", c.Title+" "+string(c.Metadata), test.title+" "+test.metadata)
		})
	}
}
