package summarize

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

func TestTitleOf(t *testing.T) {
	t.Parallel()
	user := func(text string) string {
		body := check.Must(json.Marshal(map[string]string{"role": "user", "content": text}))(t)
		return string(body)
	}
	for want, bodies := range map[string][]string{
		"What is a coppice? Be brief.": {`{"role":"system","content":"Mind."}`, user("\n What is  a\tcoppice?\nBe brief."), user("Other")},
		"plan.pdf":                     {`{"role":"user","content":[` + string(chat.AttachmentPart([32]byte{}, "plan.pdf", false).Encode()) + `]}`},
		"":                             {`{"role":"assistant","content":"Hello"}`, user("  ")},
		"Late":                         {user("  "), user("Late")},
		"ab [31m c":                    {user("a\u202eb\x1b[31m c")},
		"hazel hazel hazel hazel hazel hazel hazel hazel hazel hazel…": {user(strings.Repeat("hazel ", 20))},
		strings.Repeat("榛", 60) + "…":                                  {user(strings.Repeat("榛", 80))},
		"Why does <div> grow?":                                         {user("Why does <div> grow?")},
		"Why does a hedge grow?":                                       {user("<task>Why does <b>a hedge</b> grow?</task><environment_details>a\nb</environment_details>")},
		"Cut it":                                                       {user("<system-reminder>Today is Monday.\n<b>Mind</b> it.</system-reminder>\nCut it<system-reminder>x</system-reminder>")},
		"Grow it":                                                      {user("<environment_context><cwd>/wood</cwd></environment_context>"), user("Grow it")},
		"What of ash?":                                                 {user("<user_query>\nWhat of ash?\n</user_query>")},
		"a <user_query> that is open":                                  {user("a <user_query> that is open")},
	} {
		var said []*chat.Message
		for _, b := range bodies {
			said = append(said, chat.Read([]byte(b)))
		}
		got := TitleOf(said...)
		check.That(t, got == want, "%q, want %q", got, want)
	}
}

// Whatever is said, its beginning can be stored as a title.
func TestTitleOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := check.Must(json.Marshal(map[string]string{"role": "user", "content": rapid.String().Draw(t, "text")}))(t)
		title := TitleOf(chat.Read(body))
		check.That(t, utf8.RuneCountInString(title) <= titleLength+1 && len(title) <= tree.MaxTitleBytes &&
			!strings.ContainsAny(title, "\n\x00\x1b") && utf8.ValidString(title),
			"%q", title)
	})
}

// A branch whose first messages fill more than a page has its first question for a title.
func TestTitleOfLargeMessages(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	s, id := service(t, store, Config{Titles: TitlesDigest}), conversation(t, store)
	chain := []tree.NewMessage{{Message: chat.Read(messageBody("user", "What is a coppice?"))}}
	for range 6 {
		chain = append(chain, tree.Text(tree.RoleUser, strings.Repeat("x ", 480<<10)))
	}
	chain = append(chain, tree.Text(tree.RoleAssistant, "A wood."))
	stored := check.Must(store.AppendChain(t.Context(), id, uuid.Nil, chain))(t)
	check.NoError(t, s.Title(t.Context(), id, stored.Messages[len(stored.Messages)-1].ID))
	c, err := store.Conversation(t.Context(), id)
	check.That(t, err == nil && c.Title == "What is a coppice?", "the title is %q, %v", c.Title, err)
}
