package summarize

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/tree"
)

// What is written by hand is what encoding/json makes of the same fields, down
// to the order, so that a field can't be forgotten.
func TestContextJSON(t *testing.T) {
	t.Parallel()
	id := rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	}).Filter(func(id uuid.UUID) bool { return id != uuid.Nil }) // which a context has nowhere
	n := rapid.IntRange(0, 1<<40)
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"offline-digest", `a "model" & <b>\`, "模型\u2028\x7f\n"}))
	rapid.Check(t, func(t *rapid.T) {
		c := Context{
			ConversationID: id.Draw(t, "conversation"), HeadID: id.Draw(t, "head"), Complete: rapid.Bool().Draw(t, "complete"), Omitted: n.Draw(t, "omitted"),
			Usage:   Usage{n.Draw(t, "context"), n.Draw(t, "available"), n.Draw(t, "max"), n.Draw(t, "reserved"), n.Draw(t, "trigger"), n.Draw(t, "percent")},
			Counts:  Counts{n.Draw(t, "prefix"), n.Draw(t, "kept"), n.Draw(t, "folded"), n.Draw(t, "tail")},
			Repairs: []Repair{}, Status: text.Draw(t, "status"), Messages: []json.RawMessage{},
		}
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			body, err := encode(map[string]string{"content": text.Draw(t, "content")})
			if err != nil {
				t.Fatal(err)
			}
			c.Messages = append(c.Messages, body)
		}
		for range rapid.IntRange(0, 3).Draw(t, "repairs") {
			c.Repairs = append(c.Repairs, Repair{text.Draw(t, "kind"), id.Draw(t, "message"), text.Draw(t, "call"), n.Draw(t, "index")})
		}
		if rapid.Bool().Draw(t, "summary") {
			c.Summary = &ContextSummary{id.Draw(t, "summary id"), id.Draw(t, "anchor"), id.Draw(t, "cutoff"), nil, []uuid.UUID{},
				text.Draw(t, "model"), nil, n.Draw(t, "tokens"), text.Draw(t, "time")}
			if rapid.Bool().Draw(t, "has origin") {
				at := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "imported at")).UTC()
				c.Summary.Origin = &tree.Origin{ImportedAt: at, Format: "coppice", Merged: rapid.Bool().Draw(t, "merged")}
				if rapid.Bool().Draw(t, "imported before") {
					c.Summary.Origin.FirstImportedAt = &at
				}
			}
			if rapid.Bool().Draw(t, "has prior") {
				prior := id.Draw(t, "prior")
				c.Summary.PriorSummaryID = &prior
			}
			for range rapid.IntRange(0, 3).Draw(t, "kept ids") {
				c.Summary.KeptIDs = append(c.Summary.KeptIDs, id.Draw(t, "kept id"))
			}
		}
		type bare Context // without MarshalJSON
		want, err := encode(bare(c))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.AppendJSON([]byte("before")); string(got) != "before"+string(want) {
			t.Fatalf("by hand\n%s\nby encoding/json\n%s", got[len("before"):], want)
		}
	})
}

func BenchmarkContextJSON(b *testing.B) {
	c := Context{Summary: &ContextSummary{Model: "offline-digest", KeptIDs: make([]uuid.UUID, 3)}, Messages: make([]json.RawMessage, 50), Status: "Token usage: 5/10 (50%)"}
	for i := range c.Messages {
		c.Messages[i] = json.RawMessage(`{"role":"user","content":"A message of some length, as people write them to a model."}`)
	}
	var buffer []byte
	for b.Loop() {
		buffer = c.AppendJSON(buffer[:0])
	}
}
