package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestRecognition holds that of random clients which keep their histories
// themselves no message is stored twice, none is lost, branches are where they
// belong, and a model is given what its client sent and nothing else. The model in
// memory is a bag of paths.
func TestRecognition(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	var asked atomic.Int64
	a.upstream.Otherwise(llmtest.Reply(func(llmtest.Request) llmtest.Behaviour {
		return llmtest.Answer(fmt.Sprintf("answer %d", asked.Add(1)%5)) // some are equal
	}))
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		w := &world{api: a, t: rt, round: fmt.Sprint("round ", round), prompts: map[string]int{}, paths: map[string]int{}, ids: map[string]string{}, answers: map[string][]string{}}
		before := len(a.upstream.Requests())
		for range rapid.IntRange(2, 5).Draw(rt, "clients") {
			w.clients = append(w.clients, &client{
				tenant: rapid.SampledFrom([]string{"acme", "other"}).Draw(rt, "tenant"), session: rapid.SampledFrom([]string{"", "", "1", "2"}).Draw(rt, "session"),
			})
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			w.step()
		}
		given := map[string]int{}
		for _, req := range a.upstream.Requests()[before:] {
			given[joined(req.Messages)]++
		}
		if !maps.Equal(given, w.prompts) {
			rt.Errorf("the model was given %v, want %v", given, w.prompts)
		}
		w.compare()
	})
}

// A client keeps its history.
type client struct {
	tenant, session string
	history         []turn
}

type turn struct{ role, text string }

// A world is what the model in memory knows.
type world struct {
	*api
	t       *rapid.T
	round   string
	clients []*client

	prompts map[string]int      // that a model is to be given, as often
	paths   map[string]int      // messages by their conversation and path
	ids     map[string]string   // of conversations
	answers map[string][]string // ids, by request
}

// A call is a request on its way.
type call struct {
	client   *client
	turns    []turn
	body     string
	messages []json.RawMessage
	retry    bool
	aside    bool

	status           int
	got              string
	id, conversation string
	answer           string
}

// step has some of the clients send a request, at the same time.
func (w *world) step() {
	var calls []*call
	for _, c := range w.clients {
		if rapid.Bool().Draw(w.t, "waits") {
			continue
		}
		calls = append(calls, w.request(c))
	}
	w.send(calls)
	for _, c := range calls {
		w.learn(c)
	}
	var retries []*call
	for _, c := range calls {
		if !c.aside && rapid.IntRange(0, 3).Draw(w.t, "retry") == 0 {
			retries = append(retries, &call{client: c.client, turns: c.turns, body: c.body, retry: true})
		}
	}
	w.send(retries)
	for _, c := range retries {
		if c.status != 200 || !slices.Contains(w.answers[c.client.tenant+c.body], c.id) {
			w.t.Errorf("the retry of %s got %d %s, want one of %v", c.body, c.status, c.id, w.answers[c.client.tenant+c.body])
		}
	}
}

// request draws what a client asks next.
func (w *world) request(c *client) *call {
	n := len(c.history)
	say := func(what string) turn {
		return turn{"user", what + rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "text")}
	}
	switch what := rapid.SampledFrom([]string{"new", "continue", "continue", "edit", "regenerate", "make up"}).Draw(w.t, "what"); {
	case what == "new" || n == 0:
		c.history = nil
		if rapid.Bool().Draw(w.t, "system") {
			c.history = []turn{{"system", w.round}}
		}
		c.history = append(c.history, say(w.round+" opening "))
	case what == "continue":
		c.history = append(c.history, say("next "))
	case what == "make up":
		c.history = append(c.history, say("and "), turn{"assistant", "made up"}, say("then "))
	default:
		last := n - 1
		for up := rapid.IntRange(0, 2).Draw(w.t, "up"); last > 0 && (c.history[last].role != "user" || up > 0); last-- {
			if c.history[last].role == "user" {
				up--
			}
		}
		if c.history[last].role != "user" {
			last = slices.IndexFunc(c.history, func(t turn) bool { return t.role == "user" })
		}
		c.history = slices.Clone(c.history[:last+1])
		if what == "edit" && last > 1 { // not the opening, which names the conversation
			c.history[last] = say("edited ")
		}
	}
	out := &call{client: c, turns: slices.Clone(c.history), aside: rapid.IntRange(0, 7).Draw(w.t, "aside") == 0}
	for _, t := range c.history {
		out.messages = append(out.messages, w.write(t))
	}
	members := fmt.Sprintf(`"store":true,"stream":%v,`, rapid.Bool().Draw(w.t, "stream"))
	out.body = `{"model":"wood",` + members + `"messages":[` + strings.Join(texts(out.messages), ",") + `]}`
	return out
}

// write writes a message in one of the ways of clients.
func (w *world) write(t turn) json.RawMessage {
	text, _ := json.Marshal(t.text)
	role := t.role
	if role == "system" && rapid.Bool().Draw(w.t, "developer") {
		role = "developer"
	}
	forms := []string{
		`{"role":"` + role + `","content":` + string(text) + `}`,
		`{ "content": ` + string(text) + `, "role": "` + role + `" }`,
		`{"role":"` + role + `","content":[{"type":"text","text":` + string(text) + `}],"name":""}`,
	}
	if role == "assistant" {
		forms = append(forms, `{"role":"assistant","content":`+string(text)+`,"refusal":null,"annotations":[],"audio":null,"tool_calls":null}`)
	}
	return json.RawMessage(rapid.SampledFrom(forms).Draw(w.t, "form"))
}

func texts(all []json.RawMessage) (out []string) {
	for _, m := range all {
		out = append(out, string(m))
	}
	return out
}

func joined(all []json.RawMessage) string { return strings.Join(texts(all), " ") }

// send sends the requests at the same time.
func (w *world) send(calls []*call) {
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() {
			headers := []string{"X-Stainless-Retry-Count", "0"}
			if c.retry {
				headers[1] = "1"
			}
			if c.client.session != "" {
				headers = append(headers, "X-Coppice-Session", w.round+c.client.session)
			}
			if c.aside {
				headers = append(headers, "X-Coppice-Record", "false")
			}
			status, got, header := w.api.send(c.client.tenant, "POST", "/chat/completions", c.body, headers...)
			c.status, c.got, c.id, c.conversation = status, got, header.Get("X-Coppice-Head-Id"), header.Get("X-Coppice-Conversation-Id")
			c.answer = answerIn(got)
		})
	}
	wg.Wait()
}

// answerIn is the text of an answer, streamed or not.
func answerIn(got string) (text string) {
	for line := range strings.SplitSeq(got, "\n") {
		var c struct {
			Choices []struct{ Delta, Message struct{ Content string } }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) == nil && len(c.Choices) > 0 {
			text += c.Choices[0].Delta.Content + c.Choices[0].Message.Content
		}
	}
	return text
}

// learn takes an answer into the model, and into the client's history.
func (w *world) learn(c *call) {
	if c.status != 200 || c.answer == "" || (c.id == "") != c.aside {
		w.t.Fatalf("%s: %d %s, recorded as %q", c.body, c.status, c.got, c.id)
	}
	w.prompts[joined(c.messages)]++
	if c.aside { // in words of its own, lest it be taken for what another client is answered at the same time
		c.client.history = append(c.client.history, turn{"assistant", c.answer + " aside"})
		return
	}
	c.client.history = append(c.client.history, turn{"assistant", c.answer})
	w.answers[c.client.tenant+c.body] = append(w.answers[c.client.tenant+c.body], c.id)
	key := c.client.tenant + "/" + c.client.session
	if c.client.session == "" {
		opening := slices.IndexFunc(c.turns, func(t turn) bool { return t.role == "user" })
		key += fmt.Sprint(c.turns[:opening+1])
	}
	if known, ok := w.ids[key]; ok && known != c.conversation {
		w.t.Errorf("%s is in %s and in %s", key, known, c.conversation)
	}
	w.ids[key] = c.conversation
	path := c.conversation
	for _, t := range c.turns {
		path += fmt.Sprint("/", t)
		w.paths[path] = max(w.paths[path], 1)
	}
	w.paths[path+fmt.Sprint("/", turn{"assistant", c.answer})]++
}

// compare compares what is stored with the model.
func (w *world) compare() {
	stored := map[string]int{}
	seen := map[string]bool{}
	for key, conversation := range w.ids {
		if seen[conversation] {
			w.t.Errorf("%s is in the conversation of another", key)
		}
		seen[conversation] = true
		tenant, _, _ := strings.Cut(key, "/")
		store, id := w.store.ForTenant(tenant), uuid.MustParse(conversation)
		paths := map[uuid.UUID]string{uuid.Nil: conversation}
		for n, err := range store.Tree(w.api.t.Context(), id, 0) { // parents first
			if err != nil {
				w.t.Fatal(err)
			}
			m, err := store.Message(w.api.t.Context(), id, n.ID)
			if err != nil {
				w.t.Fatal(err)
			}
			said := chat.Read(m.Body)
			role := string(said.Role)
			if role == "developer" {
				role = "system"
			}
			paths[n.ID] = paths[n.ParentID] + fmt.Sprint("/", turn{role, said.Text()})
			stored[paths[n.ID]]++
		}
	}
	if !maps.Equal(stored, w.paths) {
		w.t.Errorf("stored are\n%s\nwant\n%s", listed(stored), listed(w.paths))
	}
}

func listed(all map[string]int) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%d × %s\n", all[path], path)
	}
	return b.String()
}
