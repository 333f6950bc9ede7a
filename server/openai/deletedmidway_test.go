package openai_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
)

// TestDeletedMidway holds that the end of a stream says what was deleted while it
// was read, and what to do, whether or not a piece of the answer was saved before.
func TestDeletedMidway(t *testing.T) {
	t.Parallel()
	const (
		conversationGone = `"message":"The conversation was deleted while the answer came, so nothing of the answer is stored. Begin a new conversation."`
		branchGone       = `"message":"What was answered, or the answer, was deleted while the answer came, so nothing of it is stored. Go on from a message that is still there."`
	)
	for name, with := range map[string]reply.Config{"saved": often("a"), "not saved": {}} {
		for _, want := range []string{conversationGone, branchGone} {
			gate := make(chan struct{})
			a := setup{replies: with}.serve(t)
			a.upstream.Otherwise(llmtest.PauseMidway(gate, "It is a wood that is cut so that it grows again."))
			conversation, native := a.conversation(`{"items":[` + says("user", "q") + `]}`)
			id, whole := a.stream(`{"model":"wood","stream":true,"conversation":"` + conversation + `","input":"What is a coppice?"}`)
			if name == "saved" {
				a.begunToSpeak(id)
			}
			var question uuid.UUID
			eventually(t, "the question", func() bool {
				for n, err := range a.store.ForTenant("acme").Tree(t.Context(), native, 0) {
					if err == nil && n.ParentID != uuid.Nil {
						question = n.ID
					}
				}
				return question != uuid.Nil
			})
			if want == conversationGone {
				a.get("DELETE", "/conversations/"+conversation, "")
			} else if _, err := a.store.ForTenant("acme").Prune(t.Context(), native, question); err != nil {
				t.Fatal(err)
			}
			close(gate)
			if got := whole(); !strings.Contains(got, "event: response.failed\n") || !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
