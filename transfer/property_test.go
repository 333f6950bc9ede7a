package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
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
		b, _, notes := normalize(c, testID, "test")
		mustStore(rt, store, b)
		if err := checkBundle(b); err != nil {
			rt.Fatalf("%v\n%s", err, outline(b))
		}
		checkBodies(t, b)

		stored := map[uuid.UUID]string{}
		for _, m := range c.Messages {
			stored[messageID(&c, b.Conversation.ID, m.SourceID)] = m.SourceID
		}
		parent, there := map[string]string{}, map[string]bool{}
		for _, n := range b.Nodes {
			parent[stored[n.ID]] = stored[n.ParentID]
			there[stored[n.ID]] = true
		}
		noted := func(kind Kind, id string) bool {
			return slices.ContainsFunc(notes, func(n Note) bool { return n.Place == id && (kind == "" || n.Kind == kind) })
		}
		for _, m := range c.Messages {
			if !there[m.SourceID] && m.Body != nil && !noted("", m.SourceID) {
				rt.Fatalf("%s is lost, and no note says so", m.SourceID)
			}
		}
		for id := range there {
			for up := parent[id]; up != ""; up = parent[up] {
				if !isAbove(c, up, id) && !isAbove(c, id, up) {
					rt.Fatalf("%s got onto the branch of %s\n%s", up, id, outline(b))
				}
				if !isAbove(c, up, id) && !noted(KindTool, up) {
					rt.Fatalf("%s was moved above %s, and no note says so", up, id)
				}
			}
		}
	})
}

// mustStore stores the bundle as a conversation of its own.
func mustStore(rt *rapid.T, store *tree.Store, b tree.Bundle) {
	b.Conversation.ID = uuid.New()
	if _, err := store.Import(context.Background(), b); err != nil {
		rt.Fatalf("%v\n%s", err, outline(b))
	}
}

// isAbove tells whether up is an ancestor of id in the source.
func isAbove(c Conversation, up, id string) bool {
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

func randomChat(rt *rapid.T) Conversation {
	n := rapid.IntRange(0, 12).Draw(rt, "messages")
	c := Conversation{SourceID: "c", HeadID: fmt.Sprint("m", rapid.IntRange(0, n).Draw(rt, "head"))}
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

// The fixtures of each format with something in them exchanged, doubled, taken
// out or put elsewhere: everything is read or noted, and the store takes what
// comes out.
func TestParseProperties(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	for name, file := range map[string]string{
		"chatgpt": "chatgpt.json", "claude": "claude.json", "librechat": "librechat.json",
		"openwebui": "openwebui.json", "chatbot-ui": "chatbot-ui.json", "oasst": "oasst.jsonl",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			under := formats[slices.IndexFunc(formats, func(f format) bool { return f.Name() == name })]
			data, err := os.ReadFile(filepath.Join("..", "testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if name == "oasst" {
				data = []byte(strings.SplitN(string(data), "\n", 2)[0])
			}
			rapid.Check(t, func(rt *rapid.T) {
				var whole any
				if err := json.Unmarshal(data, &whole); err != nil {
					rt.Fatal(err)
				}
				for range rapid.IntRange(1, 8).Draw(rt, "changes") {
					whole = change(rt, whole, whole)
				}
				raw := encode(whole)
				r := parsed(t, under, raw)
				if t.Failed() {
					rt.Fatalf("%s\n%s", raw, show(name, r))
				}
				for _, b := range r.bundles {
					mustStore(rt, store, b)
				}
			})
		})
	}
}

// change changes one value somewhere in v.
func change(rt *rapid.T, whole, v any) any {
	deeper := rapid.IntRange(0, 9).Draw(rt, "deeper") > 0
	switch v := v.(type) {
	case []any:
		if !deeper || len(v) == 0 {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(rt, "element")
		if rapid.IntRange(0, 9).Draw(rt, "twice") == 0 {
			return append(slices.Clone(v), v[i])
		}
		v[i] = change(rt, whole, v[i])
		return v
	case map[string]any:
		if !deeper || len(v) == 0 {
			break
		}
		names := slices.Sorted(maps.Keys(v))
		name := rapid.SampledFrom(names).Draw(rt, "member")
		if rapid.IntRange(0, 9).Draw(rt, "gone") == 0 {
			delete(v, name)
			return v
		}
		v[name] = change(rt, whole, v[name])
		return v
	}
	switch rapid.IntRange(0, 3).Draw(rt, "instead") {
	case 0: // something that is elsewhere
		return elsewhere(rt, whole)
	default:
		return rapid.SampledFrom([]any{
			nil, true, false, 0, -1, 1e300, 1760000000.5, "", " ", "x", "a\x00b", "1", "q1", "m1", "user", "tool", "assistant",
			[]any{}, map[string]any{}, []any{nil}, []any{"x"}, map[string]any{"type": "text"}, map[string]any{"type": "tool_use", "name": "f"},
			map[string]any{"type": "tool_result", "content": []any{5}}, map[string]any{"text": "x"},
		}).Draw(rt, "value")
	}
}

// elsewhere copies a value out of whole.
func elsewhere(rt *rapid.T, whole any) any {
	v := whole
	for range rapid.IntRange(1, 8).Draw(rt, "depth") {
		switch at := v.(type) {
		case []any:
			if len(at) > 0 {
				v = at[rapid.IntRange(0, len(at)-1).Draw(rt, "from")]
			}
		case map[string]any:
			if len(at) > 0 {
				v = at[rapid.SampledFrom(slices.Sorted(maps.Keys(at))).Draw(rt, "from")]
			}
		}
	}
	var copied any
	_ = json.Unmarshal(encode(v), &copied) // as encode wrote it
	return copied
}
