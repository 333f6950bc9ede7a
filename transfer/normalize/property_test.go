package normalize_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/transfer/normalize"
	"github.com/coppice-chat/coppice/tree"
)

// Random conversations, with missing parents, cycles, ids that occur twice,
// empty messages and tool results in the wrong places: what comes out is a
// tree that the store takes, nothing is lost without a note, and nothing gets
// onto a branch that it wasn't on.
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
			if !there[m.SourceID] && m.Body != nil && !noted("", m.SourceID) {
				rt.Fatalf("%s is lost, and no note says so", m.SourceID)
			}
		}
		for id := range there {
			for up := parent[id]; up != ""; up = parent[up] {
				if !isAbove(c, up, id) && !isAbove(c, id, up) {
					rt.Fatalf("%s got onto the branch of %s\n%s", up, id, formattest.Outline(b))
				}
				if !isAbove(c, up, id) && !noted(format.KindTool, up) {
					rt.Fatalf("%s was moved above %s, and no note says so", up, id)
				}
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
