package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// TestMixedClients holds the promises over clients of every kind at a time, on two servers. They edit,
// regenerate, call tools, compact, retry and delete. The model in memory is the trees of messages,
// each with a mark. No prompt has a mark that isn't on its branch; one of a branch that was never
// compacted has all of them. What is stored is the model, message by message.
func TestMixedClients(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.contexts = summarize.Config{Summarizer: marker{}, Settings: summarize.Defaults()}
	set := &a.contexts.Settings
	set.KeepCapTokens, set.MinRecentMessages, set.MinFoldMessages, set.MinFoldTokens, set.AnchorSlackTurns = 200, 2, 2, 100, 1
	servers := []*api{a.again(), a.again()}
	var marks atomic.Int64
	a.upstream.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		mark := fmt.Sprintf("[a%d]", marks.Add(1))
		if last := string(req.Messages[len(req.Messages)-1]); strings.Contains(last, "use the tool") {
			return llmtest.CallTools(llmtest.ToolCall{ID: "call_" + mark[1:len(mark)-1], Name: "look", Arguments: `{"for":"` + mark + `"}`})
		}
		return llmtest.Answer("Answer " + mark + ". " + strings.Repeat(hazel, 4))
	}))
	rapid.Check(t, func(rt *rapid.T) {
		w := &forest{api: a, servers: servers, t: rt, marks: &marks, trees: map[uuid.UUID]*copse{}}
		before := len(a.upstream.Requests())
		for _, c := range w.listed("acme") { // of the round before
			check.NoError(rt, a.store.ForTenant("acme").DeleteConversation(t.Context(), c.ID))
		}
		shared, native := a.conversation(`{}`)
		w.trees[native] = &copse{}
		kinds := []string{byResponse, byConversation, byConversation, byIDs, byChat, byWords}
		var clients []*rider
		for i := range rapid.IntRange(1, 4).Draw(rt, "clients") {
			at := w.index("kind", len(kinds))
			clients = append(clients, &rider{kind: kinds[at], id: shared, name: fmt.Sprintf("%d-%d", before, i)})
			kinds = slices.Delete(kinds, at, at+1)
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			w.step(clients)
		}
		w.checkPrompts(a.upstream.Requests()[before:])
		w.compare()
	})
}

// A marker is a summarizer whose summary has the marks of all that it was shown.
type marker struct{}

func (marker) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) {
	seen := marksIn(in.Prior)
	for _, m := range slices.Concat(in.Fold, in.LookAhead) {
		seen = append(seen, marksIn(string(m.Body))...)
	}
	return prompt.Result{Text: "A summary of what was said: " + strings.Join(seen, " "), Model: "marker", Taken: len(in.Fold)}, nil
}

var aMark = regexp.MustCompile(`\[[uar]\d+\]`)

func marksIn(text string) []string { return aMark.FindAllString(text, -1) }

// A bole is a message of the model.
type bole struct {
	id       uuid.UUID
	mark     string
	parent   *bole
	children []*bole
	call     string // that it makes
	brought  int    // of an answer: messages that its request brought
	deleted  bool   // of an answer: its response is, and others go on from it
}

func (b *bole) path() (marks []string) {
	for ; b != nil; b = b.parent {
		marks = append(marks, b.mark)
	}
	slices.Reverse(marks)
	return marks
}

// A copse is a conversation of the model.
type copse struct {
	all       []*bole
	compacted bool
	emptied   bool // by a deletion, which may have taken the conversation along
	begun     bool // by a request, and not by POST /conversations
}

func (c *copse) find(id uuid.UUID) *bole {
	if i := slices.IndexFunc(c.all, func(b *bole) bool { return b.id == id }); i >= 0 {
		return c.all[i]
	}
	return nil
}

// A forest is what the model in memory knows.
type forest struct {
	*api
	servers []*api
	t       *rapid.T
	marks   *atomic.Int64
	trees   map[uuid.UUID]*copse
	sent    []*ride // all turns
}

// A ride is a turn on its way.
type ride struct {
	rider    *rider
	path     string
	body     string
	headers  []string
	messages []string // marks that it adds, where it adds them
	under    *bole    // that it continues, of conversation at; nil for a root
	at       uuid.UUID
	anywhere bool // or after another answer of the same conversation: it continues the active head
	compact  bool

	status int
	got    string
	header http.Header
	answer *bole
}

func (w *forest) draw(label string, n int) bool { return w.index(label, n) == 0 }

func (w *forest) index(label string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

// input is what a client says next: words, or the result of a call.
func (w *forest) input(c *rider) (mark, item string) {
	if c.pending != "" {
		mark = fmt.Sprintf("[r%d]", w.marks.Add(1))
		if c.kind == byChat {
			return mark, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"Result %s."}`, c.pending, mark)
		}
		return mark, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"Result %s."}`, c.pending, mark)
	}
	mark = fmt.Sprintf("[u%d]", w.marks.Add(1))
	text := "Question " + mark + ". " + strings.Repeat(hazel, 4)
	if w.draw("tool", 4) {
		text += "Please use the tool."
	}
	return mark, says("user", text)
}

const lookTool = `"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]`

// turn is a request for a response.
func (w *forest) turn(c *rider, members, input string) *ride {
	r := &ride{rider: c, path: "/responses"}
	extra := ""
	if r.compact = w.draw("compacts", 3); r.compact {
		extra = `"context_management":[{"type":"compaction","compact_threshold":1000}],`
	}
	r.body = fmt.Sprintf(`{"model":"wood","stream":%t,%s%s,%s"input":[%s]}`, w.draw("stream", 2), extra, lookTool, members, input)
	return r
}

// step has some of the clients send a turn at the same time, then some of them
// again, and last one of them delete its turn.
func (w *forest) step(clients []*rider) {
	var rides []*ride
	for _, c := range clients {
		if !w.draw("waits", 3) {
			rides = append(rides, c.next(w))
		}
	}
	for _, r := range rides { // some of which have made another branch active
		if r.anywhere {
			now := check.Must(w.store.ForTenant("acme").Conversation(w.api.t.Context(), r.at))(w.t)
			if r.under = w.trees[r.at].find(now.HeadID); (r.under == nil) != (now.HeadID == uuid.Nil) {
				w.t.Fatalf("the active head %s is no message of the conversation", now.HeadID)
			}
		}
	}
	w.run(rides, "0")
	w.settle(rides)
	for _, r := range rides {
		r.rider.learn(w, r)
	}
	var again []*ride
	for _, r := range rides {
		if w.draw("retry", 4) && len(r.answer.children) == 0 {
			again = append(again, &ride{rider: r.rider, path: r.path, body: r.body, headers: r.headers})
		}
	}
	w.run(again, "1")
	for _, r := range again {
		same := slices.ContainsFunc(w.sent, func(s *ride) bool {
			return s.body == r.body && s.answer.id.String() == r.header.Get("X-Coppice-Head-Id")
		})
		check.Need(w.t, r.status == 200 && same, "the retry of %s got %d %s", r.body, r.status, r.got)
	}
	if len(clients) > 0 && w.draw("delete", 4) {
		w.remove(clients[w.index("who", len(clients))])
	}
}

func (w *forest) run(rides []*ride, count string) {
	var wg sync.WaitGroup
	for _, r := range rides {
		server := w.servers[w.index("server", len(w.servers))]
		wg.Go(func() {
			r.status, r.got, r.header = server.send("acme", "POST", r.path, r.body, append([]string{retryHeader, count, "X-Coppice-Session", r.rider.name + r.rider.session}, r.headers...)...)
		})
	}
	wg.Wait()
}

// settle takes the turns of a step into the model.
func (w *forest) settle(rides []*ride) {
	for _, r := range rides {
		id, err := uuid.Parse(r.header.Get("X-Coppice-Conversation-Id"))
		check.Need(w.t, r.status == 200 && err == nil && !strings.Contains(r.got, `"status":"failed"`) && (r.at == uuid.Nil || id == r.at),
			"%s in %s: %d %s %v", r.body, r.at, r.status, r.got, r.header)
		if r.at = id; w.trees[id] == nil {
			w.trees[id] = &copse{begun: true}
		}
		w.trees[id].compacted = w.trees[id].compacted || r.compact
		w.trees[id].emptied = false // a session that goes on makes its conversation again
	}
	made := map[*bole]bool{}
	for left := slices.Clone(rides); len(left) > 0; {
		n := len(left)
		left = slices.DeleteFunc(left, func(r *ride) bool { return w.place(r, made) })
		check.Need(w.t, len(left) != n, "answers stand where they don't belong: %+v", left)
	}
	w.sent = append(w.sent, rides...)
}

// place puts a turn where it is stored, if what it stands on is in the model.
func (w *forest) place(r *ride, made map[*bole]bool) bool {
	c, store := w.trees[r.at], w.store.ForTenant("acme")
	page, err := store.Transcript(w.api.t.Context(), r.at, uuid.MustParse(r.header.Get("X-Coppice-Head-Id")), tree.Paging{Limit: len(r.messages) + 1})
	check.Need(w.t, err == nil && len(page.Data) == len(r.messages)+1, "%s: %d messages, %v", r.body, len(page.Data), err)
	under := c.find(page.Data[0].ParentID)
	if page.Data[0].ParentID != uuid.Nil && under == nil {
		return false // in this step, too
	}
	check.Need(w.t, under == r.under || r.anywhere && made[under], "%s stands under %v, want %v", r.body, under, r.under)
	for i, m := range page.Data {
		b := c.find(m.ID)
		if b == nil {
			b = &bole{id: m.ID, parent: under}
			if b.mark = fmt.Sprint(marksIn(string(m.Body))); i < len(r.messages) && b.mark != "["+r.messages[i]+"]" {
				w.t.Fatalf("%s is stored as %s, want %s", r.body, m.Body, r.messages[i])
			}
			b.mark = strings.Trim(b.mark, " ")
			b.mark = b.mark[1 : len(b.mark)-1]
			if calls := chat.Read(m.Body).Calls; len(calls) > 0 {
				b.call = calls[0].ID
			}
			c.all = append(c.all, b)
			if under != nil {
				under.children = append(under.children, b)
			}
		}
		under = b
	}
	r.answer, under.brought = under, len(r.messages)
	made[under] = true
	return true
}
