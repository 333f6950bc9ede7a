package torture

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
)

// shown is what a faultless server shows of a message.
func (s *scene) shown(name string) shown {
	m := s.message(name)
	content := m.content
	g := shown{
		ID: m.id, ConversationID: s.c.id, ParentID: m.parent, Role: m.role, Content: &content, ToolCallID: m.answers, Pinned: m.pinned,
		Metadata: json.RawMessage(`{}`), Tokens: 9, Depth: m.depth, CreatedAt: m.sentAt,
	}
	for _, c := range m.calls {
		var call chatCall
		call.ID, call.Type, call.Function.Name, call.Function.Arguments = c.ID, "function", c.Name, c.Arguments
		g.ToolCalls = append(g.ToolCalls, call)
	}
	for _, other := range s.c.order {
		if other.parent != m.parent {
			continue
		}
		g.Siblings.Count++
		if other == m {
			g.Siblings.Index = g.Siblings.Count
		}
	}
	return g
}

func TestCheckShown(t *testing.T) {
	t.Parallel()
	other := "[m1999999] other"
	for _, test := range []struct {
		name   string
		change func(s *scene, m *message, g *shown)
		want   string
	}{
		{"nothing is wrong", func(*scene, *message, *shown) {}, ""},
		{"another id", func(_ *scene, _ *message, g *shown) { g.ID = uuid.New() }, "changed"},
		{"another conversation", func(_ *scene, _ *message, g *shown) { g.ConversationID = uuid.New() }, "changed"},
		{"another parent", func(s *scene, _ *message, g *shown) { g.ParentID = s.id["a1'"] }, "changed"},
		{"another role", func(_ *scene, _ *message, g *shown) { g.Role = "user" }, "changed"},
		{"another text", func(_ *scene, _ *message, g *shown) { g.Content = &other }, "changed"},
		{"no text", func(_ *scene, _ *message, g *shown) { g.Content = nil }, "changed"},
		{"a call too many", func(_ *scene, _ *message, g *shown) { g.ToolCalls = make([]chatCall, 1) }, "changed"},
		{"the answer to a call", func(_ *scene, _ *message, g *shown) { g.ToolCallID = "call_1" }, "changed"},
		{"another depth", func(_ *scene, _ *message, g *shown) { g.Depth++ }, "changed"},
		{"number 0 of its siblings", func(_ *scene, _ *message, g *shown) { g.Siblings.Index = 0 }, "changed"},
		{"number 2 of 1 sibling", func(_ *scene, _ *message, g *shown) { g.Siblings.Index = 2 }, "changed"},
		{"a pin that nobody asked for", func(_ *scene, _ *message, g *shown) { g.Pinned = true }, "changed"},
		{"a pin that is lost", func(_ *scene, m *message, _ *shown) { m.pinned = true }, "changed"},
		{"no tokens", func(_ *scene, _ *message, g *shown) { g.Tokens = 0 }, "changed"},
		{"more tokens than before", func(_ *scene, m *message, _ *shown) { m.tokens = 8 }, "changed"},
		{"another time than before", func(_ *scene, m *message, g *shown) { m.createdAt = g.CreatedAt.Add(time.Microsecond) }, "changed"},
		{"a time before it was sent", func(_ *scene, m *message, g *shown) { g.CreatedAt = m.sentAt.Add(-time.Hour) }, "changed"},
		{"a time to come", func(_ *scene, _ *message, g *shown) { g.CreatedAt = time.Now().Add(time.Hour) }, "changed"},
		{"other metadata", func(_ *scene, m *message, g *shown) {
			m.metadata, g.Metadata = `{"n":1.50}`, json.RawMessage(`{"n":1.5}`)
		}, "changed"},
		{"metadata with other spaces", func(_ *scene, m *message, g *shown) {
			m.metadata, g.Metadata = `{"n":1.50}`, json.RawMessage(`{ "n": 1.50 }`)
		}, ""},
		{"reasoning that is lost", func(_ *scene, m *message, _ *shown) { m.reasoning = "Thought 1." }, "changed"},
		{"metadata that are lost", func(_ *scene, m *message, _ *shown) { m.metadata = `{"n":1}` }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			m, g := s.message("a2"), s.shown("a2")
			test.change(s, m, &g)
			found := checkShown(s.c, m, g, "a test")
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

// What one answer says of a message holds for the next.
func TestShownIsLearned(t *testing.T) {
	t.Parallel()
	s := newScene()
	m, g := s.message("a2"), s.shown("a2")
	if found := checkShown(s.c, m, g, "the first answer"); len(found) > 0 || m.tokens != g.Tokens || !m.createdAt.Equal(g.CreatedAt) || m.metadata != "{}" {
		t.Fatalf("found %v, learned %+v", found, m)
	}
	g.CreatedAt = g.CreatedAt.Add(time.Microsecond)
	if got := kinds(checkShown(s.c, m, g, "the second answer")); got != "changed" {
		t.Errorf("found %q of another time", got)
	}
	g = s.shown("a2")
	s.node("a2").Tokens = g.Tokens + 1
	if got := kinds(checkTree(s.c, s.tree, s.marks)); got != "changed" {
		t.Errorf("found %q of other tokens in the tree", got)
	}
}

func TestCheckAppended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		change  func(s *scene, got []shown) []shown
		created bool
		want    string
	}{
		{"nothing is wrong", func(_ *scene, got []shown) []shown { return got }, true, ""},
		{"the answer to another append", func(s *scene, got []shown) []shown { got[0] = s.shown("a2"); return got }, true, "changed, append"},
		{"a message too few", func(_ *scene, got []shown) []shown { return got[:1] }, true, "append"},
		{"the wrong order", func(_ *scene, got []shown) []shown { got[0], got[1] = got[1], got[0]; return got }, true, "changed, append, changed, append"},
		{"the first of its siblings", func(_ *scene, got []shown) []shown { got[0].Siblings.Index = 1; return got }, true, "append"},
		{"the first of its siblings, which were more by the second attempt", func(_ *scene, got []shown) []shown { got[0].Siblings.Index = 1; return got }, false, ""},
		{"too few siblings", func(_ *scene, got []shown) []shown { got[0].Siblings.Index, got[0].Siblings.Count = 1, 1; return got }, true, "append"},
		{"too many siblings", func(_ *scene, got []shown) []shown { got[0].Siblings.Index, got[0].Siblings.Count = 3, 3; return got }, true, "append"},
		{"a time before it was sent", func(s *scene, got []shown) []shown {
			s.message("c1").sentAt = s.message("c1").sentAt.Add(-time.Hour)
			got[0].CreatedAt = s.message("c1").sentAt
			return got
		}, true, "append"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			time.Sleep(time.Millisecond) // the scene's messages were acknowledged before
			s.send("c1", "u2", "assistant")
			s.send("c2", "c1", "user")
			c1 := s.message("c1")
			found := checkAppended(s.c, []*message{c1, s.message("c2")}, test.change(s, []shown{s.shown("c1"), s.shown("c2")}), test.created, time.Now(), time.Now())
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

func TestCheckHeader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(c *conversation, g *shownConversation)
		want   string
	}{
		{"nothing is wrong", func(*conversation, *shownConversation) {}, ""},
		{"another id", func(_ *conversation, g *shownConversation) { g.ID = uuid.New() }, "changed"},
		{"another title", func(_ *conversation, g *shownConversation) { g.Title = "other" }, "changed"},
		{"the title of a rename without an answer, and what goes with it", func(c *conversation, g *shownConversation) {
			c.mayHave("later")
			g.Title, g.Metadata, g.Tags = "later", encoded(metadataOf(c.origin, "later")), tagsOf("later")
		}, ""},
		{"the title of a rename without its metadata", func(c *conversation, g *shownConversation) {
			c.mayHave("later")
			g.Title = "later"
		}, "changed"},
		{"a title that its source had, of a fork", func(c *conversation, g *shownConversation) {
			c.inherited = &titleSet{set: map[string]bool{"source": true}}
			g.Title, g.Metadata, g.Tags = "source", encoded(metadataOf(c.origin, "source")), tagsOf("source")
		}, ""},
		{"what a fork adds to the metadata", func(c *conversation, g *shownConversation) {
			metadata := metadataOf(c.origin, c.title)
			metadata["forked_from"] = "it"
			g.Metadata = encoded(metadata)
		}, ""},
		{"no metadata", func(_ *conversation, g *shownConversation) { g.Metadata = json.RawMessage(`{}`) }, "changed"},
		{"tags of its title", func(c *conversation, g *shownConversation) {
			c.has("renamed 2")
			g.Title, g.Metadata, g.Tags = c.title, encoded(metadataOf(c.id, c.title)), []string{"of renamed 2"}
		}, ""},
		{"no tags", func(c *conversation, g *shownConversation) {
			c.has("renamed 2")
			g.Title, g.Metadata = c.title, encoded(metadataOf(c.id, c.title))
		}, "changed"},
		{"tags of no title", func(_ *conversation, g *shownConversation) { g.Tags = []string{"of torture 1"} }, "changed"},
		{"no settings", func(_ *conversation, g *shownConversation) { g.Settings = json.RawMessage(`{}`) }, "changed"},
		{"no time", func(_ *conversation, g *shownConversation) { g.CreatedAt = time.Time{} }, "changed"},
		{"updated before it was created", func(_ *conversation, g *shownConversation) { g.UpdatedAt = g.CreatedAt.Add(-time.Second) }, "changed"},
		{"updated in time to come", func(_ *conversation, g *shownConversation) { g.UpdatedAt = time.Now().Add(time.Hour) }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newConversation(uuid.New())
			c.has("torture 1")
			c.settings = `{"anchor_slack_turns":2}`
			g := shownConversation{ID: c.id, Title: c.title, Metadata: encoded(metadataOf(c.id, c.title)), Settings: json.RawMessage(c.settings), CreatedAt: time.Now(), UpdatedAt: time.Now()}
			test.change(c, &g)
			found := checkHeader(c, g, "a test")
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
