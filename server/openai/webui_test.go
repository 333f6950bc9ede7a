package openai_test

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// A webUI is a chat interface that keeps its histories itself: it sends each request
// as the program of its name does.
type webUI struct {
	*api
	headers  []string
	chat     func(messages []string) string        // body of a turn
	side     map[string]string                     // bodies of requests for titles and tags, by what they are for
	messages func(role, text string, n int) string // a message, by how often it was sent before

	times        map[string]int
	sent         []string
	conversation string
}

// turn sends a history whose last message is a user's, and gives the answer.
func (u *webUI) turn(history ...string) string {
	u.t.Helper()
	u.sent = u.written(history)
	status, got, header := u.send("acme", "POST", "/chat/completions", u.chat(u.sent), u.headers...)
	if u.conversation = header.Get("X-Coppice-Conversation-Id"); status != 200 || u.conversation == "" {
		u.t.Fatalf("%d %s", status, got)
	}
	return answerIn(got)
}

// written are the messages of a history, in which users and assistants take turns.
func (u *webUI) written(history []string) (messages []string) {
	messages = append(messages, u.messages("system", "Be brief.", 0))
	for i, text := range history {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, u.messages(role, text, u.times[text]))
		u.times[text]++
	}
	return messages
}

// aside sends the requests for titles and tags, none of which may be recorded.
func (u *webUI) auxiliary() {
	u.t.Helper()
	for what, body := range u.side {
		status, got, header := u.send("acme", "POST", "/chat/completions", body, u.headers...)
		if status != 200 || header.Get("X-Coppice-Conversation-Id") != "" {
			u.t.Errorf("the request for %s: %d %s %v", what, status, got, header)
		}
	}
}

// stop sends a turn and leaves once it has seen a part of its answer.
func (u *webUI) stop(part string, history ...string) {
	u.t.Helper()
	res, err := u.do(u.t.Context(), "acme", "POST", "/openai/v1/chat/completions", u.chat(u.written(history)), u.headers...)
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	seen := ""
	for lines := bufio.NewReader(res.Body); seen != part; {
		line, err := lines.ReadString('\n')
		if err != nil {
			u.t.Fatalf("%v, after %q", err, seen)
		}
		seen += answerIn(line)
	}
}

// branches are the conversations of acme, each as its branches, which are texts.
func (a *api) branches() (all [][]string) {
	a.t.Helper()
	store := a.store.ForTenant("acme")
	for _, c := range a.listed("acme") {
		heads, err := store.Branches(a.t.Context(), c.ID, tree.Paging{Limit: tree.MaxPage})
		if err != nil {
			a.t.Fatal(err)
		}
		var branches []string
		for _, head := range heads.Data {
			var texts []string
			for m, err := range store.Branch(a.t.Context(), c.ID, head.ID, 0) {
				if err != nil {
					a.t.Fatal(err)
				}
				texts = append(texts, chat.Read(m.Body).Text())
			}
			branches = append(branches, strings.Join(texts, " / "))
		}
		slices.Sort(branches)
		all = append(all, branches)
	}
	return all
}

// Open WebUI names the user and the chat. It sends text, and here every other answer
// as parts, as LibreChat does.
func openWebUI(a *api) *webUI {
	task := func(what string) string {
		return `{"model":"wood","messages":[` + said("user", "### Task:\n"+what+"\n### Output:\nJSON\n### Chat History:\n<chat_history>\nUSER: What is a coppice?\nASSISTANT: A wood.\n</chat_history>") + `],"stream":false,"max_completion_tokens":1000}`
	}
	return &webUI{
		api: a,
		headers: []string{
			"X-OpenWebUI-User-Name", "Hazel%20Wood", "X-OpenWebUI-User-Id", "0e7c4d9a", "X-OpenWebUI-User-Email", "hazel@example.org", "X-OpenWebUI-User-Role", "user",
			"X-OpenWebUI-Chat-Id", "5d2f9f0e-6a7b-4c1d-8e9f-0a1b2c3d4e5f", "X-OpenWebUI-Message-Id", "7b1e",
		},
		chat: func(history []string) string {
			return `{"stream": true, "model": "wood", "messages": [` + strings.Join(history, ", ") + `], "stream_options": {"include_usage": true}}`
		},
		side: map[string]string{
			"a title":         task("Generate a concise, 3-5 word title with an emoji summarizing the chat history."),
			"tags":            task("Generate 1-3 broad tags categorizing the main themes of the chat history."),
			"what to ask":     task("Suggest 3-5 relevant follow-up questions or prompts."),
			"words to search": task("Analyze the chat history to determine the necessity of generating search queries."),
		},
		messages: func(role, text string, n int) string {
			if role == "assistant" && n%2 == 1 {
				return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q,"tool_call_ids":[]}]}`, text)
			}
			return fmt.Sprintf(`{"role": %q, "content": %q}`, role, text)
		},
		times: map[string]int{},
	}
}

// TestWebUIs has a chat interface do what its users do: chat, ask again, edit,
// stop, go back to another branch. One conversation is stored, with each of these as
// a branch, no message twice, and nothing of titles and tags.
func TestWebUIs(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{
		Record:      true,
		SidePrompts: []string{"### Task: Generate", "### Task: Suggest", "### Task: Analyze the chat history"},
	})
	next := make(chan llmtest.Behaviour, 1)
	a.upstream.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		if last := string(req.Messages[len(req.Messages)-1]); strings.Contains(last, "chat_history") || strings.Contains(last, "conversation") {
			return llmtest.Answer(`{"title":"🌳 Coppice"}`)
		}
		return <-next
	}))
	u := openWebUI(a)
	turn := func(answer string, history ...string) {
		t.Helper()
		next <- llmtest.Answer(answer)
		if got := u.turn(history...); got != answer {
			t.Errorf("%v is answered %q, want %q", history, got, answer)
		}
		if prompt, want := a.prompt(), strings.Join(u.sent, " "); prompt != want {
			t.Errorf("the model was given %s, want %s", prompt, want)
		}
	}
	const what, often, who = "What is a coppice?", `How often is it cut? 🌳 <b>"é"</b>`, "### Task:\nRespond to the user query using the provided context.\nWho cuts it?"
	turn("A wood.", what)
	u.auxiliary()
	turn("Every ten years.", what, "A wood.", often)
	turn("Every seven years.", what, "A wood.", often)                  // regenerated
	turn("Yes.", what, "A wood.", often, "Every ten years.", "Always?") // after a switch to the first answer
	turn("In winter.", what, "A wood.", "When is it cut?")              // a question that was edited
	turn("A shrub.", "What is a hazel?")                                // the opening
	turn("Indeed.", what, "A forest.", "Really?")                       // an answer
	u.auxiliary()
	gate := make(chan struct{})
	defer close(gate)
	next <- llmtest.PauseMidway(gate, "A woodman cuts it with a billhook.")
	const part = "A woodman cuts it with a" // before the pause
	u.stop(part, what, "A wood.", who)
	a.eventually(func() bool { return strings.Contains(fmt.Sprint(a.branches()), part) })
	turn("At home.", what, "A wood.", who, part, "Where does he live?")
	const begins = "Be brief. / What is a coppice? / A wood. / "
	want := []string{
		begins + often + " / Every seven years.", begins + often + " / Every ten years. / Always? / Yes.", begins + "When is it cut? / In winter.", "Be brief. / What is a hazel? / A shrub.",
		"Be brief. / What is a coppice? / A forest. / Really? / Indeed.", begins + who + " / " + part + " / Where does he live? / At home.",
	}
	slices.Sort(want)
	got := a.branches()
	if len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("the branches are\n%s\nwant\n%s", strings.Join(slices.Concat(got...), "\n"), strings.Join(want, "\n"))
	}
	distinct := map[string]bool{} // each prefix of a branch is a message
	for _, branch := range want {
		for path := branch; path != ""; path = path[:max(0, strings.LastIndex(path, " / "))] {
			distinct[path] = true
		}
	}
	if n := a.messages(u.conversation); n != len(distinct) {
		t.Errorf("%d messages, want %d", n, len(distinct))
	}
}
