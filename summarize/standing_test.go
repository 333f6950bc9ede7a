package summarize

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A check reads nothing where settings ask for nothing, the path is short, or it is known to have room.
func TestCheckReadsWhatItNeeds(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := tree.New(pool)
	id := conversation(t, store)
	s := service(t, store, Config{})
	head := talk(t, store, id, uuid.Nil, 40)
	compact(t, s, id, head.ID, Demand{})
	head = talk(t, store, id, head.ID, 1)
	g, b := grownBranch(t, s, id, head.ID)
	due, known, err := s.Check(t.Context(), id, g, b, nil)
	check.Need(t, err == nil && !due && known != nil, "after a compaction: due %v, %+v, %v", due, known, err)
	off, manual := g, g
	off.Settings, manual.Settings = []byte(`{"compaction":"off"}`), []byte(`{"compaction":"manual"}`)
	short, longer := b, b
	short.PathTokens = 100
	longer.HeadID, longer.PathTokens, longer.Depth = uuid.New(), b.PathTokens+50, b.Depth+1

	closed := check.Must(pgxpool.NewWithConfig(t.Context(), pool.Config()))(t)
	closed.Close()
	blind := s.Over(tree.New(closed))
	for name, test := range map[string]struct {
		g     tree.Growth
		b     tree.GrownBranch
		known *Standing
	}{"off": {off, b, nil}, "manual": {manual, b, nil}, "short": {g, short, nil}, "known": {g, longer, known}} {
		if due, _, err := blind.Check(t.Context(), id, test.g, test.b, test.known); due || err != nil {
			t.Errorf("%s: due %v, %v", name, due, err)
		}
	}
	if _, _, err := blind.Check(t.Context(), id, g, b, nil); err == nil {
		t.Error("a branch of which nothing is known was not read")
	}

	for due := false; !due; {
		e := check.Must(s.Explain(t.Context(), id, head.ID))(t)
		g, b := grownBranch(t, s, id, head.ID)
		if due, known, err = s.Check(t.Context(), id, g, b, known); err != nil || due != (e.TokensToTrigger < 0 && e.Automatic) {
			t.Fatalf("%d tokens to the trigger, automatic %v (%s): due %v, %v", e.TokensToTrigger, e.Automatic, e.Reason, due, err)
		}
		head = talk(t, store, id, head.ID, 1)
	}
}

// A branch has the window of its last answer's model, in contexts and in when it is due.
func TestWindowIsThatOfTheModelThatAnswers(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	windows := map[string]int{"small": 2000, "large": 40_000}
	s := service(t, store, Config{Settings: Defaults(), WindowFor: func(model string) (window, reserved int) { return windows[model], windows[model] / 8 }})
	id := conversation(t, store)
	trunk := talk(t, store, id, uuid.Nil, 40).ID
	for _, test := range []struct {
		model  string
		window int
		due    bool
	}{{"small", 2000, true}, {"large", 40_000, false}, {"unknown", 128_000, false}} {
		answer := tree.NewMessage{Message: chat.Read(messageBody("assistant", "So it is.")), Metadata: json.RawMessage(`{"reply":{"model":"` + test.model + `"}}`)}
		head := appendAll(t, store, id, appendAll(t, store, id, trunk, []tree.NewMessage{tree.Text(tree.RoleUser, "Is it?"), answer}).ID, []tree.NewMessage{tree.Text(tree.RoleUser, "And now?")}).ID
		c := contextOf(t, s, id, head)
		check.That(t, c.Usage.MaxContextTokens == test.window, "%s: the window is %d", test.model, c.Usage.MaxContextTokens)
		growths := check.Must(store.Feed().Growths(t.Context(), tree.Pending{ConversationID: id, TenantID: store.TenantID()}))(t)
		branches := growths[0].Branches
		last := branches[len(branches)-1]
		due, known, err := s.Check(t.Context(), id, growths[0], branches[len(branches)-2], nil)
		check.That(t, err == nil && due == test.due, "%s: its answer is due %v, %v", test.model, due, err)
		for what, known := range map[string]*Standing{"known": known, "unknown": nil} {
			// Of the reply that a message asks for nothing is known, unless the branch was looked at.
			want := test.due && what == "known"
			if due, _, err := s.Check(t.Context(), id, growths[0], last, known); err != nil || due != want {
				t.Errorf("%s: a message below it, whose branch is %s, is due %v, %v", test.model, what, due, err)
			}
		}
	}
}
