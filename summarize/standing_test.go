package summarize

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A check reads nothing where the settings ask for nothing, where the path is short,
// and where the branch goes on from one whose standing is known and has room. The
// standing is that of a full look: a branch is due as soon as it is over its trigger.
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
	if err != nil || due || known == nil {
		t.Fatalf("after a compaction: due %v, %+v, %v", due, known, err)
	}
	off, manual := g, g
	off.Settings, manual.Settings = []byte(`{"compaction":"off"}`), []byte(`{"compaction":"manual"}`)
	short, longer := b, b
	short.PathTokens = 100
	longer.HeadID, longer.PathTokens, longer.Depth = uuid.New(), b.PathTokens+50, b.Depth+1

	closed, err := pgxpool.NewWithConfig(t.Context(), pool.Config())
	if err != nil {
		t.Fatal(err)
	}
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
		e, err := s.Explain(t.Context(), id, head.ID)
		if err != nil {
			t.Fatal(err)
		}
		g, b := grownBranch(t, s, id, head.ID)
		if due, known, err = s.Check(t.Context(), id, g, b, known); err != nil || due != (e.TokensToTrigger < 0 && e.Automatic) {
			t.Fatalf("%d tokens to the trigger, automatic %v (%s): due %v, %v", e.TokensToTrigger, e.Automatic, e.Reason, due, err)
		}
		head = talk(t, store, id, head.ID, 1)
	}
}
