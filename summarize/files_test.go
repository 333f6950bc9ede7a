package summarize

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// TestFilesAreFolded folds a message that names a file: the summarizer reads what
// stands in the file, and the digest keeps its facts.
func TestFilesAreFolded(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	file, _, err := store.AddAttachment(t.Context(), "hedge.txt", []byte("The hedge was planted by Oda Brandt on 4711-03-02 and costs EUR 1,290.50 a year."))
	check.NoError(t, err)
	body := (&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart("Read this."), file.Part()}}).Encode()
	var read strings.Builder
	summarizers := map[string]Summarizer{
		"own": own(func(in prompt.Input) (prompt.Result, error) {
			for _, m := range in.Fold {
				for _, f := range in.Read(m).Files {
					read.WriteString(f.Name + f.Text)
				}
			}
			return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
		}),
		"digest": nil,
	}
	for name, with := range summarizers {
		s, id := service(t, store, Config{Summarizer: with}), conversation(t, store)
		m := check.Must(store.Append(t.Context(), id, uuid.Nil, tree.NewMessage{Message: chat.Read(body)}))(t)
		head := talk(t, store, id, m.ID, 40)
		if k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil); err != nil || k.Outcome != tree.OutcomeSaved {
			t.Fatalf("%s: %s: %s, %v", name, k.Outcome, k.Reason, err)
		}
		summary := string(contextOf(t, s, id, head.ID).Messages[0])
		if name == "digest" && !strings.Contains(summary, "1,290.50") {
			t.Errorf("the digest is %s", summary)
		}
	}
	if !strings.Contains(read.String(), "Oda Brandt") {
		t.Errorf("the summarizer reads %.300s", read.String())
	}
}

// TestPathsAreCarriedOn folds calls twice: a summary ends with the files that tools used,
// and who writes the next one doesn't read the list.
func TestPathsAreCarriedOn(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	s := service(t, store, Config{Summarizer: own(func(in prompt.Input) (prompt.Result, error) {
		if strings.Contains(in.Prior, "Files that tools used") || in.Prior != "" && in.PriorTokens != tokens.O200k().Count(in.Prior) {
			t.Errorf("the summary before is %d tokens: %s", in.PriorTokens, in.Prior)
		}
		return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
	})})
	id, head := conversation(t, store), uuid.Nil
	for _, path := range []string{"hedge.go", "gate.go"} {
		for _, m := range []tree.Message{prompttest.UserSays("Mend " + path), prompttest.AssistantCalls("edit", `{"path":"`+path+`"}`), prompttest.ToolSays("edit", "done")} {
			stored := check.Must(store.Append(t.Context(), id, head, tree.NewMessage{Message: chat.Read(m.Body)}))(t)
			head = stored.ID
		}
		head = talk(t, store, id, head, 30).ID
		compact(t, s, id, head, Demand{})
	}
	if c := contextOf(t, s, id, head); !strings.Contains(string(c.Messages[0]), `\n- changed hedge.go\n- changed gate.go\n</coppice-summary>`) {
		t.Errorf("the summary is %s", c.Messages[0])
	}
}
