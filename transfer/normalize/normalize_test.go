package normalize_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/transfer/normalize"
	"github.com/coppice-chat/coppice/tree"
)

// testID is the id that conversations get here.
var testID = uuid.MustParse("5f0c1d0e-7a7c-4c55-9a3b-6d0b5a5f0b1f")

// one is a message of a source: its id, its parent's, and what it says, as "role: text",
// "calls a b" (an assistant's calls) or "answers a: text" (a tool's).
func one(id, parent, what string) format.Message {
	m := format.Message{SourceID: id, ParentID: parent}
	head, text, _ := strings.Cut(what, ": ")
	switch words := strings.Fields(head); {
	case len(words) == 0:
	case words[0] == "calls":
		p := format.Piece{Role: tree.RoleAssistant}
		for _, call := range words[1:] {
			p.Calls = append(p.Calls, format.NewCall(call, "f", nil))
		}
		m.Body = p.Body()
	case words[0] == "answers":
		p := format.Piece{Role: tree.RoleTool, Answers: strings.Join(words[1:], ""), Parts: []chat.Part{chat.TextPart(text)}}
		m.Body = p.Body()
	default:
		m.Body = format.TextBody(tree.Role(head), text)
	}
	return m
}

// talk is a source conversation of such messages; head may be "".
func talk(head string, messages ...format.Message) format.Conversation {
	return format.Conversation{SourceID: "c", Title: "T", HeadID: head, Messages: messages}
}

func TestNormalizeTree(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		in          format.Conversation
		tree, notes string
	}{
		{"nothing", talk(""), "", ""},
		{"sound, and no head named", talk("", one("a", "", "user: 1"), one("b", "a", "assistant: 2")),
			"user: 1\n*assistant: 2", ""},
		{"children before parents", talk("a", one("b", "a", "assistant: 2"), one("a", "", "user: 1")),
			"*user: 1\nassistant: 2", ""},
		{"a node without a message", talk("root", one("root", "", ""), one("a", "root", "user: 1"), one("b", "root", "user: 2")),
			"user: 1\n*user: 2", "repaired head (T) root: the active head is no message that was kept; b became it"},
		{"the head says nothing", talk("b", one("a", "", "user: 1"), one("b", "a", "assistant: "), one("c", "", "user: 2")),
			"*user: 1\nuser: 2", "left out empty (T) b: it says nothing\nrepaired head (T) b: the active head is no message that was kept; a became it"},
		{"a missing head", talk("x", one("a", "", "user: 1")),
			"*user: 1", "repaired head (T) x: the active head is not there; the newest leaf became it"},
		{"a missing parent", talk("", one("a", "x", "user: 1")),
			"*user: 1", "repaired orphan (T) a: its parent x is not there; it became a root"},
		{"a cycle with a tail", talk("", one("tail", "b", "user: 3"), one("b", "a", "user: 2"), one("a", "b", "user: 1")),
			"user: 2\n  user: 3\n  *user: 1", "repaired cycle (T) b: its parent a is also below it; it became a root"},
		{"the same twice", talk("", one("a", "", "user: 1"), one("a", "", "user: 1"), one("a", "", "user: other")),
			"*user: 1", "left out duplicate (T) a: the same message stands there twice\nleft out duplicate (T) a: another message with this id stands before it"},
		{"empty in the middle", talk("", one("a", "", "user: 1"), one("b", "a", "assistant:  "), one("c", "b", "user: 2"), one("d", "b", "user: 3")),
			"user: 1\n  user: 2\n  *user: 3", "left out empty (T) b: it says nothing; what replied to it now replies to the message before it"},
		{"no ids", talk("", one("", "", "user: 1"), one("", "", "user: 2")),
			"user: 1\n*user: 2", ""},
		{"roles of other programs", talk("", one("a", "", "human: 1"), one("b", "a", "Bot: 2")),
			"user: 1\n*assistant: 2", "repaired role (T) a: role \"human\" became user\nrepaired role (T) b: role \"Bot\" became assistant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkNormalize(t, tt.in, tt.tree, tt.notes)
		})
	}
}

func checkNormalize(t *testing.T, in format.Conversation, wantTree, wantNotes string) {
	t.Helper()
	b, _, notes := normalize.Bundle(new(in), testID, "test")
	formattest.Check(t, b)
	formattest.Same(t, "tree", formattest.Outline(b), wantTree)
	formattest.Same(t, "notes", formattest.Notes(transfer.Report{Notes: notes}), wantNotes)
}

func TestNormalizeAnswers(t *testing.T) {
	t.Parallel()
	call, both := one("c", "", "calls x"), one("c", "", "calls x y")
	const moved = "repaired tool (T) %s: moved up to right below its call x; other messages stood between"
	const said = "repaired tool (T) %s: a tool result that answers x, a call which is not open above it, became an assistant message"
	for _, tt := range []struct {
		name        string
		messages    []format.Message
		tree, notes string
	}{
		{"sound", []format.Message{both, one("r", "c", "answers y: 1"), one("s", "r", "answers x: 2")},
			"assistant: [x f{}] [y f{}]\ntool y: 1\n*tool x: 2", ""},
		{"each branch answers for itself", []format.Message{call, one("r", "c", "answers x: 1"), one("s", "c", "answers x: 2")},
			"assistant: [x f{}]\n  tool x: 1\n  *tool x: 2", ""},
		{"never answered", []format.Message{call, one("q", "c", "user: well?")},
			"assistant: [x f{}]\n*user: well?", ""},
		{"names no call", []format.Message{both, one("r", "c", "answers : 1"), one("s", "r", "answers : 2")},
			"assistant: [x f{}] [y f{}]\ntool x: 1\n*tool y: 2",
			"repaired tool (T) r: a tool result that names no call was taken as the answer to x, the first open one\n" +
				"repaired tool (T) s: a tool result that names no call was taken as the answer to y, the first open one"},
		{"names another call", []format.Message{both, one("r", "c", "answers z: 1"), one("s", "r", "answers x: 2")},
			"assistant: [x f{}] [y f{}]\ntool y: 1\n*tool x: 2",
			"repaired tool (T) r: a tool result that answers z, a call which is not open above it, was taken as the answer to y, the first open one"},
		{"too late", []format.Message{call, one("a", "c", "assistant: wait"), one("u", "a", "user: hm"), one("r", "u", "answers x: 1"), one("e", "r", "user: ah")},
			"assistant: [x f{}]\ntool x: 1\nassistant: wait\nuser: hm\n*user: ah", fmt.Sprintf(moved, "r")},
		{"too late, behind another answer", []format.Message{both, one("r", "c", "answers y: 1"), one("a", "r", "assistant: wait"), one("s", "a", "answers x: 2")},
			"assistant: [x f{}] [y f{}]\ntool y: 1\ntool x: 2\n*assistant: wait", fmt.Sprintf(moved, "s")},
		{"too late, and another branch would see it", []format.Message{call, one("a", "c", "assistant: wait"), one("r", "a", "answers x: 1"), one("o", "a", "user: other")},
			"assistant: [x f{}]\nassistant: wait\n  assistant: 1\n  *user: other", fmt.Sprintf(said, "r")},
		{"the call is below", []format.Message{one("r", "", "answers x: 1"), one("d", "r", "calls x")},
			"assistant: 1\n*assistant: [x f{}]", fmt.Sprintf(said, "r")},
		{"answered twice", []format.Message{call, one("r", "c", "answers x: 1"), one("s", "r", "answers x: 2")},
			"assistant: [x f{}]\ntool x: 1\n*assistant: 2", fmt.Sprintf(said, "s")},
		{"no such call, and no text", []format.Message{call, one("r", "c", "answers z: "), one("s", "r", "answers x: 1")},
			"assistant: [x f{}]\n*tool x: 1", "left out tool (T) r: a tool result that answers z, a call which is not open above it, and has no text; what replied to it now replies to the message before it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkNormalize(t, talk("", tt.messages...), tt.tree, tt.notes)
		})
	}
}

func TestNormalizeTimes(t *testing.T) {
	t.Parallel()
	at := func(m format.Message, second int) format.Message {
		m.CreatedAt = time.Date(2025, 1, 1, 0, 0, second, 0, time.UTC)
		return m
	}
	c := talk("",
		one("a", "", "user: no time"), at(one("b", "a", "assistant: late"), 9), at(one("c", "a", "assistant: early"), 3), one("d", "b", "user: like b"),
		format.Message{SourceID: "e", ParentID: "a", Body: format.TextBody("user", "year 20000"), CreatedAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
	)
	b, _, notes := normalize.Bundle(new(c), testID, "test")
	var got strings.Builder
	for _, n := range b.Nodes {
		fmt.Fprintf(&got, "%s %s\n", n.CreatedAt.Format("05"), formattest.BodyLine(n.Body))
	}
	formattest.Same(t, "order", got.String(), "03 user: no time\n03 assistant: early\n03 user: year 20000\n09 assistant: late\n09 user: like b")
	check.Equal(t, "when the conversation was made", b.Conversation.CreatedAt.UTC(), at(format.Message{}, 3).CreatedAt)
	check.That(t, len(notes) == 3 && notes[0].Kind == format.KindTime, "notes: %v", notes)

	untimed, _, notes := normalize.Bundle(new(talk("", one("a", "", "user: 1"), one("b", "a", "user: 2"))), testID, "test")
	check.That(t, untimed.Nodes[1].CreatedAt.IsZero() && len(notes) == 0, "without any times: %v, notes %v", untimed.Nodes[1].CreatedAt, notes)
}

// Reasoning is the store's to keep beside an assistant's message, and nowhere else.
func TestNormalizeReasoning(t *testing.T) {
	t.Parallel()
	with := func(m format.Message, reasoning string) format.Message {
		m.Reasoning = reasoning
		return m
	}
	own := format.Message{SourceID: "e", ParentID: "a", Body: json.RawMessage(`{"role":"assistant","content":"x","reasoning":"y"}`)}
	b, _, notes := normalize.Bundle(new(talk("",
		one("a", "", "user: 1"), with(one("b", "a", "assistant: 2"), "H\x00m\xff."), with(one("c", "b", "user: 3"), "Not mine."),
		with(one("d", "c", "assistant: 4"), strings.Repeat("ä", tree.MaxReasoning)), with(own, "z"), with(one("f", "a", "assistant: 5"), " "),
	)), testID, "test")
	got := map[string]string{}
	for _, n := range b.Nodes {
		got[formattest.BodyLine(n.Body)] = n.Reasoning
	}
	check.That(t, got["assistant: 2"] == "H\uFFFDm\uFFFD." && got["user: 3"] == "" && got["assistant: x"] == "" && got["assistant: 5"] == "",
		"%.200q", got)
	if long := got["assistant: 4"]; len(long) > tree.MaxReasoning || len(long) < tree.MaxReasoning-4 || !strings.HasSuffix(long, "ä…") {
		t.Errorf("%d bytes are left", len(long))
	}
	check.That(t, len(notes) >= 3, "notes: %v", notes)
	check.NoError(t, formattest.CheckBundle(b))
}

// Random conversations, however broken, come out as a tree that the store takes. Nothing is lost
// without a note, and nothing gets onto a branch that it wasn't on.
func TestNormalizeProperties(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	rapid.Check(t, func(rt *rapid.T) {
		c := randomChat(rt)
		b, _, notes := normalize.Bundle(new(c), testID, "test")
		formattest.MustStore(rt, store, b)
		formattest.Check(t, b)

		stored := map[uuid.UUID]string{}
		for _, m := range c.Messages {
			stored[normalize.MessageID(&c, b.Conversation.ID, m.SourceID)] = m.SourceID
		}
		parent, there := map[string]string{}, map[string]bool{}
		for _, n := range b.Nodes {
			parent[stored[n.ID]] = stored[n.ParentID]
			there[stored[n.ID]] = true
		}
		noted := func(kind format.Kind, id string) bool {
			return slices.ContainsFunc(notes, func(n format.Note) bool { return n.Place == id && (kind == "" || n.Kind == kind) })
		}
		for _, m := range c.Messages {
			check.Need(rt, there[m.SourceID] || m.Body == nil || noted("", m.SourceID), "%s is lost, and no note says so", m.SourceID)
		}
		for id := range there {
			for up := parent[id]; up != ""; up = parent[up] {
				if !isAbove(c, up, id) && !isAbove(c, id, up) {
					rt.Fatalf("%s got onto the branch of %s\n%s", up, id, formattest.Outline(b))
				}
				check.Need(rt, isAbove(c, up, id) || noted(format.KindTool, up), "%s was moved above %s, and no note says so", up, id)
			}
		}
	})
}

// isAbove tells whether up is an ancestor of id in the source.
func isAbove(c format.Conversation, up, id string) bool {
	parent := map[string]string{}
	for _, m := range slices.Backward(c.Messages) { // of those with one id, the first counts
		parent[m.SourceID] = m.ParentID
	}
	seen := map[string]bool{}
	for id = parent[id]; id != "" && !seen[id]; id = parent[id] {
		if id == up {
			return true
		}
		seen[id] = true
	}
	return false
}

func randomChat(rt *rapid.T) format.Conversation {
	n := rapid.IntRange(0, 12).Draw(rt, "messages")
	c := format.Conversation{SourceID: "c", HeadID: fmt.Sprint("m", rapid.IntRange(0, n).Draw(rt, "head"))}
	call := rapid.SampledFrom([]string{"", "x", "y"})
	for i := range n {
		id := fmt.Sprint("m", i)
		if rapid.IntRange(0, 15).Draw(rt, "twice") == 0 {
			id = fmt.Sprint("m", rapid.IntRange(0, n-1).Draw(rt, "id"))
		}
		parent := ""
		if i > 0 && rapid.IntRange(0, 9).Draw(rt, "is no root") > 0 {
			parent = fmt.Sprint("m", rapid.IntRange(max(0, i-3), i-1).Draw(rt, "parent"))
		}
		if rapid.IntRange(0, 15).Draw(rt, "somewhere") == 0 {
			parent = fmt.Sprint("m", rapid.IntRange(0, n+1).Draw(rt, "parent"))
		}
		what := rapid.SampledFrom([]string{"user: hi", "assistant: hi", "assistant: ", "", "system: hi", "calls x", "calls x y", "answers", "answers"}).Draw(rt, "says")
		if what == "answers" {
			what = fmt.Sprintf("answers %s: %s", call.Draw(rt, "call"), rapid.SampledFrom([]string{"", "result"}).Draw(rt, "result"))
		}
		c.Messages = append(c.Messages, one(id, parent, what))
	}
	return c
}
