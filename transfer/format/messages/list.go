package messages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
)

// A List is a list of messages that becomes a conversation.
type List struct {
	conv   format.Conversation
	last   string            // source id of the last message
	call   string            // id of the last function_call, which a role function answers
	said   string            // start of what a user said first
	open   *format.Turn      // an answer that goes on over several items; nil for none
	thinks []string          // before the next answer, as messages of their own
	above  map[string]string // parents by the lists of children
	made   map[string]string // ids that were made of messages, by their own
	seen   map[string]bool   // ids of the messages of other lists of the conversation
	known  int               // how many of them are in seen
}

// remember takes the messages of a list that ended as known to those behind it.
func (l *List) remember() {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	for _, m := range l.conv.Messages[l.known:] {
		l.seen[m.SourceID] = true
	}
	l.known = len(l.conv.Messages)
}

func NewList(c format.Conversation) *List {
	return &List{conv: c, above: map[string]string{}, made: map[string]string{}}
}

// SoFar returns the messages read so far, and the source id of the last.
func (l *List) SoFar() (last string, c *format.Conversation) {
	l.flush()
	return l.last, &l.conv
}

// describe takes what stands beside the messages.
func (l *List) describe(about format.Object) {
	if about == nil {
		return
	}
	c := &l.conv
	if info := about.Object("info"); info != nil { // opencode's
		delete(about, "info")
		maps.Copy(about, info)
	}
	if id := about.FirstStr("id", "uuid", "chatID", "conversationId", "sessionId"); format.IsID(id) {
		c.SourceID = id
	}
	_, title := about.First("title", "name", "chatTitle", "topic", "userTitle", "autoTitle", "subject")
	if title != "" {
		c.Title = c.TextOf(about, title, "title")
	}
	c.HeadID = format.KeyOf(about.FirstStr("currNode", "currentNode", "current_node", "currentId"))
	c.CreatedAt, _ = about.Object("time").Time("created")
	from := format.Source{}
	for _, name := range slices.Sorted(maps.Keys(about)) {
		switch name {
		case title:
		case "metadata":
			if c.Metadata = about[name]; c.Metadata[0] != '{' {
				c.Metadata = nil
				from.Put(name, about[name])
			}
		case "created_at", "createdAt", "created", "create_time", "startTime":
			var sound bool
			if c.CreatedAt, sound = about.Time(name); !sound {
				from.Put(name, about[name])
			}
		case "system", "systemPrompt", "system_prompt", "systemInstruction", "system_instruction", "instructions":
			if text, ok := (format.Object{name: about[name]}).Said(name); ok && text != "" {
				l.Add(name, format.TextBody(chat.System, text))
				continue
			}
			if parts := about.Object(name)["parts"]; len(parts) > 0 {
				l.Add(name, format.EncodeObject(format.Object{"role": chat.MustMarshal("system"), "parts": parts}))
			}
		default:
			from.Put(name, about[name])
		}
	}
	c.Metadata = format.AddSources(c.Metadata, from)
}

// Add appends the next message, if the conversation has room for it.
func (l *List) Add(place string, raw json.RawMessage) bool {
	if !l.conv.Node() || !l.conv.Room() {
		return false
	}
	given := format.ObjectOf(raw)
	if given == nil {
		l.conv.LeftOut(format.KindSyntax, place, "no message object but %s", format.ClipRaw(raw))
		return true
	}
	if l.known > 0 {
		if id := format.ContentID(l.last, format.Compacted(raw)); l.seen[id] {
			l.last = id
			l.conv.Merge()
			return true
		}
	}
	l.conv.Look(given)
	var nested []json.RawMessage
	if name := nestedIn(given); name != "" {
		nested = given.List(name)
		delete(given, name)
		raw = format.EncodeObject(given)
	}
	o := unwrapped(given)
	if kind := o.Str("type"); isItem(kind) && !o.Has("role") || kind == "message" && l.open != nil && o.Str("role") == "assistant" {
		l.item(kind, o, raw)
		return true
	}
	l.flush()
	if isWire(given) {
		l.keep(place, given, raw)
		return l.below(place, nested)
	}
	if sound, found := format.RepairText(raw); found != "" {
		l.conv.Repaired(format.KindText, place, "%s replaced by U+FFFD", found)
		o = unwrapped(format.ObjectOf(sound))
	}
	l.read(o, raw)
	return l.below(place, nested)
}

// below appends the replies that stand in a message, each below it.
func (l *List) below(place string, replies []json.RawMessage) bool {
	above := l.last
	for i, raw := range replies {
		l.last = above
		if !l.conv.Steps(len(raw)) || !l.Add(fmt.Sprintf("%s, reply %d", place, i+1), raw) {
			return false
		}
	}
	return true
}

// nestedIn gives the name of the list of replies that stand in a message; "" for none.
// Other lists of children are ids.
func nestedIn(o format.Object) string {
	for _, name := range childNames {
		if format.FirstObject(o, name) != nil {
			return name
		}
	}
	return ""
}

// keep takes a chat-completions message as it stands.
func (l *List) keep(place string, o format.Object, raw json.RawMessage) {
	m := format.Message{Body: raw}
	m.SourceID, m.ParentID = l.place(o, raw)
	l.takeAside(&m, o)
	l.normalizeFunctions(&m, o, place)
	if o.Str("role") == "user" {
		l.firstSaid(format.PartsText(o["content"]))
	}
	l.conv.Add(m)
}

func (l *List) firstSaid(text string) { l.said = cmp.Or(l.said, format.CutEnd(text, 1000)) }

// read makes messages of a message that another program writes in its own way.
func (l *List) read(o format.Object, raw json.RawMessage) {
	role := roleOf(o)
	if text, ok := o.Said("text", "content"); ok && (role == chat.Assistant && (o.Flag("isThought") || o.Flag("thought")) || role == "thinking" || role == "reasoning") {
		l.thinks = append(l.thinks, text)
		l.conv.Merge()
		return
	}
	if kind := o.Str("type"); role == "" && kind != "" {
		l.conv.LeftOut(format.KindRole, format.ContentID(l.last, format.Compacted(raw)), "a message of the type %q, which has no role", format.Clip(kind))
		return
	}
	t := l.begin(role, o, raw)
	content, name := o.First(contentNames...)
	if whole := o.Str("text"); name == "parts" && whole != "" { // which AI Studio keeps in pieces, too
		var pieces strings.Builder
		for part := range o.Objects("parts") {
			pieces.WriteString(part.Str("text"))
		}
		if pieces.String() == whole {
			content = o["text"]
		}
	}
	_, called := o.First(callNames...)
	if lobeCalls(o) {
		called = "tools"
	}
	switch {
	case role == chat.Tool && format.IsResult(format.FirstObject(format.Object{"": content}, "")):
		t.Role = chat.Assistant // of whom no piece comes
		t.Content(content)
	case role == chat.Tool:
		t.Role = chat.Assistant
		t.ResultBlock(format.Object{"content": content, "id": first(o, "tool_call_id", "toolCallId", "tool_use_id", "call_id")["id"], "is_error": o["is_error"]})
	default:
		if role == chat.Assistant {
			for _, text := range l.thinks {
				t.Think(text)
			}
			l.thinks = nil
		}
		if reasoning, ok := o.Said("reasoning_content", "reasoning", "reasoningContent", "thinking", "thought", "thoughts"); ok && role == chat.Assistant {
			t.Think(reasoning)
		}
		if word := o.FirstStr("role", "from"); word == "function_call" { // ShareGPT's
			text, _ := format.StringOf(content)
			content = format.EncodeObject(format.Object{"functionCall": chat.MustMarshal(format.ReadObject([]byte(text)))})
		}
		t.Content(content)
		for _, other := range contentNames {
			if name == "content" && other != name && !t.Says() {
				t.Content(o[other])
			}
		}
		for call := range o.Objects(called) {
			t.CallBlock(call)
		}
		if call := o.Object("toolFormerData"); call != nil {
			t.CallBlock(call)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		switch name {
		case "role", "from", "sender", "toolFormerData", called:
		default:
			if !slices.Contains(contentNames, name) {
				t.Source.Put(name, o[name])
			}
		}
	}
	if role == chat.User {
		text, _ := o.Said(contentNames...)
		l.firstSaid(text)
	}
	t.Add()
}

// begin begins the turn of a message, behind the last or below the parent that it
// names.
func (l *List) begin(role chat.Role, o format.Object, raw json.RawMessage) *format.Turn {
	id, parent := l.place(o, raw)
	t := l.conv.Turn(id, role)
	t.Parent = parent
	delete(t.Source, "id") // which is no id of the source's
	for _, name := range []string{"created_at", "createdAt", "timestamp", "ts", "create_time", "created", "time", "date"} {
		from := o
		if inner := o.Object(name); inner != nil { // opencode's {created, completed}
			from, name = inner, "created"
		}
		if at, sound := from.Time(name); sound && !at.IsZero() {
			t.CreatedAt = at
			break
		}
	}
	return t
}

// item takes an item of OpenAI's Responses API. Those between two messages of a user's
// are one answer.
func (l *List) item(kind string, o format.Object, raw json.RawMessage) {
	if sound, found := format.RepairText(raw); found != "" {
		l.conv.Repaired(format.KindText, l.last, "%s replaced by U+FFFD", found)
		o = format.ObjectOf(sound)
	}
	if l.open == nil {
		l.open = l.begin(chat.Assistant, format.Object{}, raw)
	} else {
		l.conv.Merge()
	}
	switch t := l.open; {
	case kind == "message":
		t.Content(o["content"])
	case kind == "reasoning":
		text, _ := o.Said("summary", "content")
		t.Think(text)
	default:
		t.Block(0, raw)
	}
}

// flush ends an answer of several items.
func (l *List) flush() {
	if t := l.open; t != nil {
		l.open = nil
		t.Add()
	}
}

var (
	idNames     = []string{"id", "uuid", "_id", "messageId", "message_id"}
	parentNames = []string{"parent_id", "parentId", "parentID", "parent", "parentUuid", "parent_uuid", "parentMessageId", "parent_message_id", "parent_message_uuid", "parent_response_id"}
	childNames  = []string{"children", "replies", "childrenIds", "children_ids", "childIds"}
)

// inTree tells whether an object has an id and names a parent or children.
func inTree(o format.Object) bool {
	return first(o, idNames...).ID("id") != "" && slices.ContainsFunc(slices.Concat(parentNames, childNames), func(name string) bool { _, there := o[name]; return there })
}

// bridge leaves out a line of a tree that is no message: what hangs below it goes to its
// parent.
func (l *List) bridge(place string, o format.Object) {
	if !l.conv.Node() || !l.conv.Room() {
		return
	}
	id, parent := l.place(o, nil)
	l.conv.LeftOut(format.KindContent, id, "%s is no message (type %q)", place, format.Clip(o.Str("type")))
	l.conv.Add(format.Message{SourceID: id, ParentID: parent})
}

// place gives the ids of a message and its parent: its own where it has one and names a
// parent or children, else ids of all that is said up to it.
func (l *List) place(o format.Object, raw json.RawMessage) (id, parent string) {
	own := format.KeyOf(first(o, idNames...).ID("id"))
	id, parent = own, l.last
	if !inTree(o) {
		id = format.ContentID(l.last, format.Compacted(raw))
		if l.last = id; own != "" {
			l.made[own] = id
		}
		return id, parent
	}
	l.last = id
	for _, name := range childNames {
		for _, child := range o.List(name) {
			if below := format.KeyOf((format.Object{"id": child}).ID("id")); below != "" && l.above[below] == "" {
				l.above[below] = id
			}
		}
	}
	if above, there := l.above[id]; there {
		parent = above
	}
	for _, name := range parentNames {
		if raw, there := o[name]; there {
			if parent = format.KeyOf((format.Object{"id": raw}).ID("id")); format.IsNoParent(parent) {
				parent = ""
			}
			if made, there := l.made[parent]; there {
				parent = made
			}
			break
		}
	}
	return id, parent
}

func (l *List) conversation() format.Conversation {
	l.flush()
	c := &l.conv
	if len(l.thinks) > 0 {
		c.LeftOut(format.KindHidden, "", "reasoning at the end, with no answer behind it")
	}
	if c.SourceID == "" {
		c.SourceID = format.ContentID("messages", l.last)
	}
	if c.Title == "" {
		c.Title = format.TitleOf(l.said)
	}
	return *c
}
