package reply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestContinue holds that an answer which goes on with another one is its sibling, says
// both parts to readers and in the tree, and that the model is shown the first part.
func TestContinue(t *testing.T) {
	t.Parallel()
	var asked []json.RawMessage
	f := serve(t, nil, &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
		asked = req.Messages
		return llmtest.Response(" that is cut."), nil
	}})
	id, question := f.conversation(t)
	first := f.say(t, id, question, "assistant", "A wood")
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: first, Continue: true}))
	if got := chat.Read(h.end.Message.Body).Text(); got != "A wood that is cut." || h.content.String() != got || h.end.Message.ParentID != question {
		t.Errorf("the answer is %q below %s, and %q was streamed", got, h.end.Message.ParentID, h.content.String())
	}
	if len(asked) != 3 || !strings.Contains(string(asked[1]), `"A wood"`) || string(asked[2]) != goOn {
		t.Errorf("the model was given %s", asked)
	}
	_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: question, Continue: true})
	wantError(t, err, fault.Invalid, "head_not_answerable", "Only an answer")
}
