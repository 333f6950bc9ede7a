package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A floor with other messages than the server fails the run before anything is timed.
func TestFloorReturnsTheSame(t *testing.T) {
	t.Parallel()
	way := func(name string, texts ...string) variant {
		return variant{
			name: name, jobs: []job{func(context.Context) (int, error) { return len(texts), nil }},
			shows: func(context.Context) ([]string, error) { return texts, nil },
		}
	}
	r := &run{Config: Config{Rounds: 3}, slice: time.Millisecond}
	result, err := r.compare(t.Context(), "the same", way(nameServer, "a", "b"), way(nameFloor, "a", "b"))
	if err != nil || result.Rounds != 3 || result.Ratio.Median <= 0 || result.Variants[1].Name != nameFloor || result.Variants[0].Bytes != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	for _, floor := range [][]string{{"a"}, {"a", "c"}, {"b", "a"}, {"a", "b", "c"}} {
		if _, err := r.compare(t.Context(), "x", way(nameServer, "a", "b"), way(nameFloor, floor...)); err == nil || !strings.Contains(err.Error(), "floor returned other messages") {
			t.Errorf("%q passes for a and b: %v", floor, err)
		}
	}
	if _, err := r.compare(t.Context(), "x", way(nameServer), way(nameFloor)); err == nil {
		t.Error("no messages at all pass")
	}
}

// In a chat of 260 turns whose window is half of the default, a provider's prompt
// cache has seen 95 % of the tokens before, and every regeneration and edit of the
// last turn keeps the summary.
func TestSummariesOfABranchedChat(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens = 64_000, 8_000
	service := check.Must(summarize.New(store, summarize.Config{Settings: settings}))(t)
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.05, 2, vocabulary-1)
	p := &planter{rand: random, zipf: zipf}
	append := func(parent uuid.UUID, role tree.Role, words int) uuid.UUID {
		t.Helper()
		body := fmt.Appendf(nil, `{"role":%q,"content":%q}`, role, p.text(words))
		m := check.Must(store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read(body)}))(t)
		return m.ID
	}
	look := func(head uuid.UUID) summarize.Context {
		t.Helper()
		got := check.Must(service.Context(t.Context(), c.ID, head, summarize.Window{}))(t)
		return got
	}
	summary := func(c summarize.Context) (id uuid.UUID) {
		if c.Summary != nil {
			id = c.Summary.ID
		}
		return id
	}
	var before []json.RawMessage
	sent, cached, compactions, forks := 0, 0, 0, 0
	answer := append(uuid.Nil, tree.RoleSystem, 20)
	for turn := range 260 {
		above := answer
		question := append(above, tree.RoleUser, 20+random.IntN(40))
		now := look(question)
		same := true
		for i, m := range now.Messages {
			sent += len(m)
			if same = same && i < len(before) && slices.Equal(before[i], m); same {
				cached += len(m)
			}
		}
		before = now.Messages
		answer = append(question, tree.RoleAssistant, 80+random.IntN(160))
		if turn%10 == 0 && now.Summary != nil {
			forks += 2
			regenerated, edited := append(question, tree.RoleAssistant, 100), append(append(above, tree.RoleUser, 30), tree.RoleAssistant, 100)
			if want := summary(look(answer)); summary(look(regenerated)) != want || summary(look(edited)) != want {
				t.Errorf("turn %d: an edit or a regeneration lost the summary", turn)
			}
		}
		k := check.Must(service.Compact(t.Context(), c.ID, answer, summarize.TriggerAppend, nil))(t)
		if k.Outcome == tree.OutcomeSaved {
			compactions++
		}
	}
	share := 100 * float64(cached) / float64(sent)
	t.Logf("%d forks, %d compactions, %.2f %% of %d bytes cached", forks, compactions, share, sent)
	check.That(t, forks >= 20 && compactions >= 2 && share >= 95,
		"%d forks, %d compactions, %.2f %% cached, and 95 are promised", forks, compactions, share)
}
