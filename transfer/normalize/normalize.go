// Package normalize turns a conversation as a file has it into one that the store
// takes: a tree without orphans and cycles, bodies that the chat-completions API
// takes, tool results below their calls, and times. It names each thing that it
// repairs or leaves out. It knows no format.
package normalize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Bundle turns a source conversation into a bundle that the store takes, and
// repairs what can be repaired. The notes name each thing that was repaired or
// left out, and begin with the parser's own notes. The same conversation always
// gives the same bundle. The caller gives the bundle's id. sourceIDs has the
// source's id of each node.
//
// Bundle needs the memory of the conversation a second time, and time in
// proportion to its size: of a conversation that would take more, c.TooDense says so
// afterwards, and the bundle is not the whole. Bundle takes c apart.
func Bundle(c *format.Conversation, id uuid.UUID, formatName string) (_ tree.Bundle, sourceIDs []string, _ []format.Note) {
	b := tree.Bundle{Source: c.Source, Conversation: tree.NewConversation{
		ID:       id,
		Title:    normalizeTitle(c),
		Metadata: normalizeExtra(c, c.Metadata, "", "metadata"),
		Settings: normalizeExtra(c, c.Settings, "", "settings"),
		Order:    tree.Order{Archived: c.Order.Archived, Pinned: c.Order.Pinned, Tags: normalizeTags(c)},
	}, Format: formatName}
	followOrder(c)
	g := newGraph(c)
	c.Messages = nil // which the graph has now
	g.link()
	g.breakCycles()
	g.normalizeBodies()
	g.relink()
	b.Conversation.CreatedAt = g.normalizeTimes()
	g.sort()
	g.pairAnswers()
	g.relink()
	g.sort()
	b.Nodes = g.bundle(b.Conversation.ID)
	b.HeadID = messageIDOf(g.head())
	return b, g.names, c.Noted()
}

// followOrder makes a path of messages whose parents tell nothing: a log whose lines
// all name the first as their parent, or none, and are said by several roles. Versions
// of one answer are said by one.
func followOrder(c *format.Conversation) {
	if c.OwnIDs || len(c.Messages) < 3 {
		return
	}
	named, none := 0, 0 // that name the first, or no parent
	first, roles := c.Messages[0].SourceID, map[chat.Role]bool{}
	for _, m := range c.Messages[1:] {
		switch {
		case strings.HasPrefix(m.ParentID, base(m.SourceID)+"/"): // a piece of one turn
		case m.ParentID == first:
			named++
			roles[chat.Read(m.Body).Role] = true
		case m.ParentID == "" && c.Messages[0].ParentID == "":
			none++
			roles[chat.Read(m.Body).Role] = true
		default:
			return
		}
	}
	if !roles[chat.User] || !roles[chat.Assistant] || named > 0 && none > 0 || named == 2 && none == 0 { // of two, one may be a word more
		return
	}
	last := first
	for i := range c.Messages[1:] {
		m := &c.Messages[i+1]
		if !strings.HasPrefix(m.ParentID, base(m.SourceID)+"/") {
			m.ParentID = last
		}
		last = m.SourceID
	}
	c.Repaired(format.KindOrphan, "", "each message names the first as its parent, or none; they follow each other as they stand in the file")
}

// base is the id of the turn that a message is a piece of.
func base(id string) string {
	if i := strings.LastIndexByte(id, '/'); i > 0 {
		return id[:i]
	}
	return id
}

func normalizeTitle(c *format.Conversation) string {
	title := format.OneLine(strings.ToValidUTF8(c.Title, format.Replacement))
	if title != c.Title {
		c.Repaired(format.KindText, "title", "control characters or invalid UTF-8 replaced")
	}
	if len(title) > tree.MaxTitleBytes {
		c.Repaired(format.KindTooLarge, "title", "%d bytes cut down to %d", len(title), tree.MaxTitleBytes)
		title = format.CutEnd(title, tree.MaxTitleBytes)
	}
	return title
}

// normalizeTags makes tags that the store takes.
func normalizeTags(c *format.Conversation) (tags []string) {
	changed, left := false, 0
	for _, given := range c.Order.Tags {
		tag := strings.TrimSpace(format.CutEnd(format.OneLine(strings.ToValidUTF8(given, format.Replacement)), tree.MaxTagBytes))
		switch changed = changed || tag != given; {
		case tag == "" || slices.Contains(tags, tag):
		case len(tags) == tree.MaxTags:
			left++
		default:
			tags = append(tags, tag)
		}
	}
	if changed {
		c.Repaired(format.KindText, "tags", "tags cut down to %d bytes, or characters replaced", tree.MaxTagBytes)
	}
	if left > 0 {
		c.LeftOut(format.KindMetadata, "tags", "%d tags, as a conversation can have %d", left, tree.MaxTags)
	}
	return tags
}

// normalizeExtra makes metadata or settings that the store takes, of the
// conversation or of the message at place. Such as can't be repaired are left
// out.
func normalizeExtra(c *format.Conversation, raw json.RawMessage, place, what string) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	raw, found := format.RepairText(raw)
	if found != "" {
		c.Repaired(format.KindText, place, "%s: %s replaced by U+FFFD", what, found)
	}
	most := format.MaxMembers
	if len(raw) <= tree.MaxMetadataBytes { // as the store takes it
		most = len(raw)
	}
	var o format.Object
	sound, deep := checked(raw)
	if sound || deep {
		o = format.ObjectUpTo(raw, most)
	}
	switch {
	case o == nil:
		c.LeftOut(format.KindMetadata, place, "%s that are no JSON object", what)
	case len(raw) > tree.MaxMetadataBytes:
		return shortenExtra(c, o, len(raw), place, what)
	case deep:
		c.LeftOut(format.KindMetadata, place, "%s nest arrays and objects more than %d deep", what, tree.MaxNesting)
	default:
		return raw
	}
	return nil
}

// shortenExtra leaves out the largest members of what the source said until
// the rest fits, or all where that doesn't help.
func shortenExtra(c *format.Conversation, o format.Object, size int, place, what string) json.RawMessage {
	from := o.Object("source")
	names := slices.SortedFunc(maps.Keys(from), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(from[b]), len(from[a])), strings.Compare(a, b))
	})
	without := func(n int) json.RawMessage {
		rest := format.Object{}
		for _, name := range names[n:] {
			rest[name] = from[name]
		}
		o["source"] = format.EncodeObject(rest)
		return format.EncodeObject(o)
	}
	// Without more members it is never larger, so that few tries find how many have to go.
	left := 1 + sort.Search(len(names), func(n int) bool {
		raw := without(n + 1)
		if len(raw) > tree.MaxMetadataBytes {
			return false
		}
		sound, _ := checked(raw)
		return sound
	})
	for _, name := range names[:min(left, len(names))] {
		c.LeftOut(format.KindTooLarge, place, "%s: source.%s has %d bytes, and %d is the most in all", what, name, len(from[name]), tree.MaxMetadataBytes)
	}
	if left <= len(names) {
		return without(left)
	}
	c.LeftOut(format.KindTooLarge, place, "%s have %d bytes, and %d is the most", what, size, tree.MaxMetadataBytes)
	return nil
}

// normalizeBodies makes every body one that the store takes, and drops the messages
// of which nothing can be made.
func (g *graph) normalizeBodies() {
	for _, n := range g.nodes {
		if !g.c.More() {
			return
		}
		if n.Body == nil {
			n.dropped = true
			continue
		}
		g.c.GoTo(n.Node)
		body, info, repaired, failed := normalizeBody(n.Body, g.c.OwnIDs)
		for _, d := range repaired {
			g.c.Repaired(d.kind, n.SourceID, "%s", d.detail)
		}
		if failed != nil {
			g.drop(n, failed.kind, failed.detail)
			continue
		}
		if n.Summary != nil && info.role != tree.RoleUser {
			g.drop(n, format.KindRole, fmt.Sprintf("a summary's role is user, not %s", info.role))
			continue
		}
		n.Body, n.messageInfo = body, info
		n.Reasoning = g.normalizeReasoning(n)
		if n.Annotation != (tree.Annotation{}) {
			if err := n.Annotation.Check(chat.Read(n.Body)); err != nil {
				g.c.LeftOut(format.KindMetadata, n.SourceID, "rating, label and note: %s", fault.Of(err).Detail)
				n.Annotation = tree.Annotation{}
			}
		}
		n.Metadata = normalizeExtra(g.c, n.Metadata, n.SourceID, "metadata")
		if n.was != "" {
			n.Metadata = format.AddSource(n.Metadata, "role", format.Clip(string(n.was)))
		}
	}
}

// normalizeReasoning gives reasoning that the store takes.
func (g *graph) normalizeReasoning(n *node) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(n.Reasoning, "\x00", format.Replacement), format.Replacement)
	switch size := len(text); {
	case strings.TrimSpace(text) == "":
		return ""
	case n.messageInfo.role != tree.RoleAssistant || n.Summary != nil:
		g.c.LeftOut(format.KindHidden, n.SourceID, "what was thought before a message of the role %s", n.messageInfo.role)
		return ""
	case chat.Read(n.Body).Other("reasoning") != nil:
		g.c.LeftOut(format.KindHidden, n.SourceID, "what was thought, as the message has a member reasoning itself")
		return ""
	case size > tree.MaxReasoning:
		const mark = "…"
		g.c.Repaired(format.KindTooLarge, n.SourceID, "the reasoning has %d bytes, and %d is the most; its end was cut off", size, tree.MaxReasoning)
		return format.CutEnd(text, tree.MaxReasoning-len(mark)) + mark
	}
	return text
}

// drop leaves a node out. What replied to it replies to its parent then.
func (g *graph) drop(n *node, kind format.Kind, why string) {
	n.dropped = true
	g.c.GoTo(n.Node)
	after := ""
	switch {
	case len(n.replies) == 0:
	case n.up == nil:
		after = "; what replied to it now begins the conversation"
	default:
		after = "; what replied to it now replies to the message before it"
	}
	g.c.LeftOut(kind, n.SourceID, "%s%s", why, after)
}

// normalizeTimes gives a message without a time that of the message before it, or
// the conversation's, and returns the conversation's: the earliest there is
// where the source doesn't say. Where a source gives no times at all they stay
// zero, and the store takes the time of the import.
func (g *graph) normalizeTimes() time.Time {
	timed, first := false, soundTime(g.c.CreatedAt)
	for _, n := range g.nodes {
		n.CreatedAt = soundTime(n.CreatedAt)
		if n.CreatedAt.IsZero() {
			continue
		}
		timed = true
		if g.c.CreatedAt.IsZero() && (first.IsZero() || n.CreatedAt.Before(first)) {
			first = n.CreatedAt
		}
	}
	if !timed && len(g.nodes) > 0 && !first.IsZero() {
		g.c.Repaired(format.KindTime, "", "no message has a time; they took that of the conversation")
	}
	for _, n := range g.nodes { // a parent comes before its children
		if !n.CreatedAt.IsZero() {
			continue
		}
		n.CreatedAt = first
		if n.up != nil {
			n.CreatedAt = n.up.CreatedAt
		}
		if timed {
			g.c.Repaired(format.KindTime, n.SourceID, "it has no time and took that of what is before it")
		}
	}
	return first
}

// soundTime is zero for a time that can't be written as a date.
func soundTime(t time.Time) time.Time {
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// head is the message that the active branch ends in: the source's, or the
// newest leaf. It is nil in a conversation without messages.
func (g *graph) head() *node {
	var newest *node
	for _, n := range g.nodes {
		if n.isLeaf() {
			newest = n
		}
	}
	if g.c.HeadID == "" || newest == nil {
		return newest
	}
	n, there := g.byID[g.c.HeadID]
	if !there {
		g.c.Repaired(format.KindHead, g.c.HeadID, "the active head is not there; the newest leaf became it")
		return newest
	}
	for n != nil && (n.dropped || n.Summary != nil) {
		n = n.up
	}
	if n == nil {
		n = newest
	}
	if n.SourceID != g.c.HeadID {
		g.c.Repaired(format.KindHead, g.c.HeadID, "the active head is no message that was kept; %s became it", format.Clip(n.SourceID))
	}
	return n
}

func messageIDOf(n *node) uuid.UUID {
	if n == nil {
		return uuid.Nil
	}
	return n.id
}
