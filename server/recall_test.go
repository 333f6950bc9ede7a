package server

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// recalled is what tests read of an answer.
type recalled struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Scope          string
	Searched       int
	Omitted        int
	Data           []struct {
		Message       recalledMessage
		Excerpt       string
		Score         float64
		OnBranch      bool `json:"on_branch"`
		Folded        bool
		Before, After []recalledMessage
	}
}

type recalledMessage struct {
	ID             uuid.UUID
	ConversationID uuid.UUID `json:"conversation_id"`
	Content        json.RawMessage
	Depth          int
}

func recallPath(conversation, head uuid.UUID, query url.Values) string {
	name := head.String()
	if head == uuid.Nil {
		name = "active"
	}
	return "/v1/conversations/" + conversation.String() + "/branches/" + name + "/recall?" + query.Encode()
}

func TestRecall(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	plant(t, a.store, "d")
	ask := func(head string, query url.Values) (out recalled) {
		id := uuid.Nil
		if head != "" {
			id = named("c." + head)
		}
		a.must(200, &out, request{method: "GET", path: recallPath(named("c"), id, query)})
		return out
	}
	// question is folded on the active branch, and stands above answer.
	got := ask("", url.Values{"query": {"Why is a coppice cut?"}})
	if got.Scope != "folded" || got.HeadID != named("c.thanks") || got.Searched != 1 || len(got.Data) != 1 || got.Data[0].Message.ID != named("c.question") ||
		!got.Data[0].Folded || !got.Data[0].OnBranch || got.Data[0].Message.Depth != 1 || got.Data[0].Score <= 0 || len(got.Data[0].After) != 0 {
		t.Errorf("folded: %+v", got)
	}
	got = ask("", url.Values{"query": {"Why is a coppice cut?"}, "scope": {"branch"}})
	if got.Searched != 4 || len(got.Data) == 0 || got.Data[0].Message.ID != named("c.question") || !strings.Contains(got.Data[0].Excerpt, "coppice") {
		t.Errorf("branch: %+v", got)
	}
	got = ask("third", url.Values{"query": {"hazel"}, "scope": {"branch"}})
	if got.Searched != 3 || len(got.Data) != 0 || got.HeadID != named("c.third") {
		t.Errorf("another branch: %+v", got)
	}
	got = ask("third", url.Values{"query": {"hazel"}, "scope": {"conversation"}, "limit": {"1"}})
	if got.Searched != 8 || len(got.Data) != 1 || got.Data[0].OnBranch || got.Data[0].Message.ConversationID != named("c") {
		t.Errorf("conversation: %+v", got)
	}
	got = ask("", url.Values{"query": {"hazel"}, "scope": {"tenant"}})
	if got.Searched != 16 || len(got.Data) < 2 || got.Data[0].Message.ConversationID == got.Data[1].Message.ConversationID {
		t.Errorf("tenant: %+v", got)
	}
}
