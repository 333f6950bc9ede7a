package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A shown is a message as the REST API shows it, wherever it does.
type shown struct {
	ID             uuid.UUID       `json:"id"`
	ConversationID uuid.UUID       `json:"conversation_id"`
	ParentID       uuid.UUID       `json:"parent_id"`
	Role           string          `json:"role"`
	Content        *string         `json:"content"`
	ToolCalls      []chatCall      `json:"tool_calls"`
	ToolCallID     string          `json:"tool_call_id"`
	Reasoning      string          `json:"reasoning"`
	Pinned         bool            `json:"pinned"`
	Metadata       json.RawMessage `json:"metadata"`
	Tokens         int             `json:"tokens"`
	Depth          int             `json:"depth"`
	Siblings       struct {
		Index int `json:"index"`
		Count int `json:"count"`
	} `json:"siblings"`
	CreatedAt time.Time `json:"created_at"`
}

func (s *shown) text() string {
	if s.Content == nil {
		return ""
	}
	return *s.Content
}

// clockSlack is how far the servers' clock may seem to be off, which is this
// machine's.
const clockSlack = 100 * time.Millisecond

// learn compares what the servers chose for a message, or made of it, with
// what they said before. What is new it notes. The caller holds the
// conversation's mu.
func (m *message) learn(pinned bool, tokens int, createdAt time.Time) (wrong string) {
	switch {
	case pinned != m.pinned:
		return fmt.Sprintf("is pinned: %v, and was sent as %v", pinned, m.pinned)
	case tokens <= 0:
		return fmt.Sprintf("has %d tokens", tokens)
	case m.tokens != 0 && m.tokens != tokens:
		return fmt.Sprintf("has %d tokens, and had %d", tokens, m.tokens)
	case !m.createdAt.IsZero() && !m.createdAt.Equal(createdAt):
		return fmt.Sprintf("was created at %s, and before that at %s", stamp(createdAt), stamp(m.createdAt))
	case m.createdAt.IsZero() && createdAt.Before(m.sentAt.Add(-clockSlack)):
		return fmt.Sprintf("was created at %s, and sent at %s", stamp(createdAt), stamp(m.sentAt))
	case m.createdAt.IsZero() && createdAt.After(time.Now().Add(clockSlack)):
		return fmt.Sprintf("was created at %s, which is yet to come", stamp(createdAt))
	}
	m.tokens, m.createdAt = tokens, createdAt
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// checkShown compares a message that a server shows with the ledger, and notes
// what is new in it. The caller holds the conversation's mu.
func checkShown(c *conversation, m *message, got shown, where string) (found []finding) {
	wrong := func(format string, args ...any) {
		found = append(found, finding{"changed", fmt.Sprintf("conversation %s: message %s in %s ", c.id, m.id, where) + fmt.Sprintf(format, args...)})
	}
	switch {
	case got.ID != m.id:
		wrong("is shown as %s", got.ID)
	case got.ConversationID != c.id:
		wrong("is of the conversation %s", got.ConversationID)
	case got.ParentID != m.parent:
		wrong("stands under %s, and was sent under %s", got.ParentID, m.parent)
	case got.Role != m.role:
		wrong("has the role %s, and was sent as %s", got.Role, m.role)
	case m.content != "" && got.text() != m.content:
		wrong("says %q, and said %q", got.text(), m.content)
	case got.ToolCallID != m.answers:
		wrong("answers the call %q, and was sent for %q", got.ToolCallID, m.answers)
	case !sameCalls(got.ToolCalls, m.calls):
		wrong("calls %v, and was sent with %v", got.ToolCalls, m.calls)
	case got.Depth != m.depth:
		wrong("has the depth %d, and %d messages stand above it", got.Depth, m.depth)
	case got.Siblings.Index < 1 || got.Siblings.Index > got.Siblings.Count:
		wrong("is number %d of %d siblings", got.Siblings.Index, got.Siblings.Count)
	case got.Reasoning != m.reasoning:
		wrong("was thought over as %q, and was sent with %q", got.Reasoning, m.reasoning)
	case m.metadata != "" && compact(got.Metadata) != m.metadata:
		wrong("has the metadata %s, and was sent with %s", got.Metadata, m.metadata)
	}
	if bad := m.learn(got.Pinned, got.Tokens, got.CreatedAt); bad != "" {
		wrong("%s", bad)
	}
	if m.metadata == "" {
		m.metadata = compact(got.Metadata)
	}
	return found
}

// checkAppended checks the answer to an append: all that it says of the
// messages, and of their place. It was sent first at sentAt, and answered at
// answeredAt. The caller holds the conversation's mu, since before the messages
// were acknowledged.
func checkAppended(c *conversation, ms []*message, got []shown, created bool, sentAt, answeredAt time.Time) (found []finding) {
	wrong := func(m *message, format string, args ...any) {
		found = append(found, finding{"append", fmt.Sprintf("conversation %s: the answer to the append of %s ", c.id, m.id) + fmt.Sprintf(format, args...)})
	}
	if len(got) != len(ms) {
		wrong(ms[0], "has %d messages, and %d were sent", len(got), len(ms))
		return found
	}
	for i, m := range ms {
		g := got[i]
		found = append(found, checkShown(c, m, g, "the answer to its append")...)
		if g.CreatedAt.Before(sentAt.Add(-clockSlack)) || g.CreatedAt.After(answeredAt.Add(clockSlack)) {
			wrong(m, "says that it was created at %s, and it was sent at %s and answered at %s", stamp(g.CreatedAt), stamp(sentAt), stamp(answeredAt))
		}
		if created && g.Siblings.Index != g.Siblings.Count {
			wrong(m, "says that it is number %d of %d siblings, and it is the newest", g.Siblings.Index, g.Siblings.Count)
		}
		if least, most := c.siblingsOf(m, sentAt); created && (g.Siblings.Count < least || g.Siblings.Count > most) {
			wrong(m, "says that it has %d siblings, and there are %d to %d", g.Siblings.Count, least, most)
		}
	}
	return found
}

// siblingsOf gives how many messages must, and may, stand beside a message that
// was sent at a time, itself included. The caller holds mu.
func (c *conversation) siblingsOf(m *message, sentAt time.Time) (least, most int) {
	for _, other := range c.order {
		switch {
		case other.parent != m.parent:
			continue
		case other.id == m.id:
			least++
		case other.state == acknowledged && other.ackedAt.Before(sentAt) && !c.mayBePruned(other):
			least++
		}
		most++
	}
	return least, most
}

// pruneBounds gives how many messages a prune of top deletes at least and at
// most, which is sent at a time. The caller holds mu.
func (c *conversation) pruneBounds(top *message, sentAt time.Time) (least, most int) {
	for _, m := range c.below(top) {
		most++
		sure := m.state == acknowledged && m.ackedAt.Before(sentAt)
		for at := m; sure && at != top; at = c.messages[at.parent] {
			sure = at.pruneSentAt.IsZero()
		}
		if sure {
			least++
		}
	}
	return least, most
}

// compact is JSON without space between its tokens.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return "(" + err.Error() + ")"
	}
	return b.String()
}

// A shownConversation is a conversation as the REST API shows it.
type shownConversation struct {
	ID        uuid.UUID       `json:"id"`
	Title     string          `json:"title"`
	Metadata  json.RawMessage `json:"metadata"`
	Settings  json.RawMessage `json:"settings"`
	Tags      []string        `json:"tags"`
	HeadID    uuid.UUID       `json:"head_id"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// metadataOf is what a conversation's metadata are made of: where they were
// given first, and the title that they came with.
func metadataOf(origin uuid.UUID, title string) map[string]any {
	return map[string]any{"origin": origin, "titled": title}
}

// retitled is the body of a request that gives another title, with the metadata and the
// tags that go with it. A conversation is made without tags.
func retitled(origin uuid.UUID, title string) map[string]any {
	return map[string]any{"title": title, "metadata": metadataOf(origin, title), "tags": tagsOf(title)}
}

func tagsOf(title string) []string {
	if strings.HasPrefix(title, firstTitle) {
		return nil
	}
	return []string{"of " + title}
}

// firstTitle is what the titles begin with that conversations are made with.
const firstTitle = "torture "

// checkHeader compares a conversation that a server shows with the ledger.
// Title, metadata and tags are always given together. The caller holds its mu.
func checkHeader(c *conversation, got shownConversation, where string) (found []finding) {
	wrong := func(format string, args ...any) {
		found = append(found, finding{"changed", fmt.Sprintf("conversation %s in %s ", c.id, where) + fmt.Sprintf(format, args...)})
	}
	var metadata struct {
		Origin uuid.UUID
		Titled string
	}
	switch err := json.Unmarshal(got.Metadata, &metadata); {
	case got.ID != c.id:
		wrong("is shown as %s", got.ID)
	case got.Title != c.title && !c.titles[got.Title] && !c.inherited.has(got.Title):
		wrong("has the title %q, which is none of its own: %q or %v", got.Title, c.title, c.titles)
	case err != nil || metadata.Origin != c.origin || metadata.Titled != got.Title:
		wrong("has the metadata %s, and the title %q that came with others of %s", got.Metadata, got.Title, c.origin)
	case !slices.Equal(got.Tags, tagsOf(got.Title)):
		wrong("has the tags %q, and the title %q that came with %q", got.Tags, got.Title, tagsOf(got.Title))
	case compact(got.Settings) != c.settings:
		wrong("has the settings %s, and was given %s", got.Settings, c.settings)
	case got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() || got.UpdatedAt.Before(got.CreatedAt) || got.UpdatedAt.After(time.Now().Add(clockSlack)):
		wrong("was created at %s and updated at %s", stamp(got.CreatedAt), stamp(got.UpdatedAt))
	}
	return found
}
