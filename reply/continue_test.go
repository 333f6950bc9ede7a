package reply

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestContinue holds that an answer which goes on with another one is its sibling, says
// both parts to readers and in the tree, and that the model is shown the first part: last
// where it goes on from it by itself, and else with a request to go on.
func TestContinue(t *testing.T) {
	t.Parallel()
	var asked llm.Request
	answer := func(_ context.Context, req llm.Request) (llm.Response, error) {
		asked = req
		return llmtest.Response(" that is cut."), nil
	}
	f := serve(t, func(c *Config) {
		c.Prefills = func(model string) bool { return model == "prefills" }
	}, &llmtest.Model{Answer: answer}, &llmtest.Model{ModelName: "prefills", Answer: answer})
	id, question := f.conversation(t)
	first := f.say(t, id, question, "assistant", "A wood")
	for model, last := range map[string]string{"fake": goOn, "prefills": `"A wood"`} {
		req := Request{ConversationID: id, ID: uuid.New(), HeadID: first, Continue: true, Model: model}
		h := hear(t, f.ask(t, req))
		if got := chat.Read(h.end.Message.Body).Text(); got != "A wood that is cut." || h.content.String() != got || h.end.Message.ParentID != question {
			t.Errorf("the answer is %q below %s, and %q was streamed", got, h.end.Message.ParentID, h.content.String())
		}
		if !strings.Contains(string(asked.Messages[1]), `"A wood"`) || !strings.Contains(string(asked.Messages[len(asked.Messages)-1]), last) || (string(asked.Extra["continue_final_message"]) == "true") != (model == "prefills") {
			t.Errorf("%s was given %s, %s", model, asked.Messages, asked.Extra)
		}
		if r, started, err := f.Start(t.Context(), req); err != nil || started || r.MessageID() != req.ID {
			t.Errorf("the same request again: %v, %t, %v", r, started, err)
		}
	}
	_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: question, Continue: true})
	wantError(t, err, fault.Invalid, "head_not_answerable", "Only an answer")
}
