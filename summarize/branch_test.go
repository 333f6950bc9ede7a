package summarize

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// What a branch says the context of the next messages will be is what their
// context is once they are stored: for any branch, with summaries and calls, that
// fits or doesn't.
func TestContextOfWhatComesNext(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	s := service(t, store, Config{})
	rapid.Check(t, func(rt *rapid.T) {
		id := conversation(t, store)
		head := uuid.Nil
		var path []uuid.UUID
		var open []string // calls
		say := func(i int) tree.NewMessage {
			role := rapid.SampledFrom([]string{"user", "assistant", "system", "developer", "calls"}).Draw(rt, "role")
			text, _ := json.Marshal(strings.Repeat("Words about trees. ", rapid.IntRange(1, 40).Draw(rt, "length")))
			switch {
			case len(open) > 0 && rapid.Bool().Draw(rt, "answers"):
				call := open[0]
				open = open[1:]
				return tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":%s}`, call, text))}
			case role == "calls":
				open = []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
				return tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":"assistant","tool_calls":[{"id":"a%d","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i, i))}
			}
			open = nil
			return tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":%q,"content":%s}`, role, text))}
		}
		stored := rapid.IntRange(0, 12).Draw(rt, "stored")
		for i := range stored {
			m := check.Must(store.Append(t.Context(), id, head, say(i)))(rt)
			head = m.ID
			path = append(path, m.ID)
		}
		if len(path) > 2 && rapid.Bool().Draw(rt, "summary") {
			cutoff := rapid.IntRange(0, len(path)-1).Draw(rt, "cutoff")
			anchor := rapid.IntRange(cutoff, len(path)-1).Draw(rt, "anchor")
			_, err := store.AddSummary(t.Context(), id, tree.NewSummary{
				AnchorID: path[anchor], Range: tree.SummaryRange{LastSummarizedID: path[cutoff], Model: "a test"}, Body: json.RawMessage(`{"role":"user","content":"What was said."}`),
			})
			if err != nil {
				rt.Skip(err) // it folds the prefix, say
			}
		}
		w := Window{ReservedTokens: new(int), OutputTokens: rapid.SampledFrom([]int{0, 50}).Draw(rt, "output")}
		w.MaxContextTokens = rapid.SampledFrom([]int{800, 100_000}).Draw(rt, "window")
		b, err := s.Branch(t.Context(), id, head, w)
		check.NoError(rt, err)
		var next []tree.NewMessage
		for i := range rapid.IntRange(1, 4).Draw(rt, "next") {
			next = append(next, say(100+i))
		}
		next = check.Must(store.Checked(t.Context(), next))(rt)
		got := check.Must(b.Context(t.Context(), w, next))(rt)
		all := check.Must(store.AppendChain(t.Context(), id, head, next))(rt)
		want := check.Must(s.Context(t.Context(), id, all.Messages[len(all.Messages)-1].ID, w))(rt)
		if !slices.EqualFunc(got.Messages, want.Messages, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			rt.Errorf("messages %s\nwant     %s", got.Messages, want.Messages)
		}
		got.Messages, want.Messages = nil, nil
		if !reflect.DeepEqual(got, want) {
			rt.Errorf("%+v\nwant %+v", got, want)
		}
	})
}
