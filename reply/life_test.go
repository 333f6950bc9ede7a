package reply

import (
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestLeavingIsNoStop holds that a reader which leaves a reply doesn't stop it, and that
// nobody takes it for stopping.
func TestLeavingIsNoStop(t *testing.T) {
	t.Parallel()
	model := newGate()
	f := serve(t, nil, model)
	id, head := f.conversation(t)
	r, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: head})
	check.NoError(t, err)
	if r.Attend(t.Context(), true)(); r.Stopping(true) {
		t.Error("it is stopping")
	}
	close(model.pieces)
	end(t, r)
}
