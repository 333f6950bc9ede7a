package server

import (
	"encoding/json"
	"math"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// appendBody is the schema Append: one message or a chain.
type appendBody struct {
	parentID     *uuid.UUID // nil for the active head; uuid.Nil for a new root
	keepHead     bool
	list         bool
	format.Chain // of one message where it is no list
}

// read tells the two apart by the member "messages".
func (b *appendBody) read(o reader.Object) (err error) {
	var in struct { // in one piece of memory
		to   destination
		one  messageBody
		list json.RawMessage
	}
	var space [maxFields]field
	fields := in.to.fields(space[:0])
	if b.list = o.Has("messages"); b.list {
		fields = append(fields, field{"messages", true, &in.list})
	} else {
		o, fields = asGiven(o), in.one.fields(fields)
	}
	if err := bind(o, fields); err != nil {
		return err
	}
	if err := in.to.read(b); err != nil {
		return err
	}
	if b.list {
		return readChain(o, &b.Chain)
	}
	return in.one.only("", &b.Chain)
}

// readChain reads the member "messages" of a request.
func readChain(o reader.Object, into *format.Chain) error {
	for _, element := range o.Objects("messages", math.MaxInt) {
		var m messageBody
		var space [maxFields]field
		err := bind(asGiven(element), m.fields(space[:0]))
		if err == nil {
			err = m.addTo(into, element.At.String())
		}
		if err != nil {
			return err
		}
	}
	return o.Failed()
}

// A destination says where what is appended goes.
type destination struct {
	parentID nullable
	moveHead *bool
}

func (d *destination) fields(before []field) []field {
	return append(before, field{"parent_id", false, &d.parentID}, field{"move_head", false, &d.moveHead})
}

func (d *destination) read(b *appendBody) (err error) {
	b.keepHead = d.moveHead != nil && !*d.moveHead
	b.parentID, err = parseParent(d.parentID, "")
	return err
}

// parseParent reads the member parent_id of the object at the path. A missing
// member is nil, and null, which makes a new root, is uuid.Nil.
func parseParent(parent nullable, path string) (*uuid.UUID, error) {
	if !parent.given {
		return nil, nil
	}
	id, err := parseOptionalID(parent.text, join(path, "parent_id"))
	return &id, err
}

// messageMembers are the members of a chat-completions message, in the order in
// which it is stored, whatever order they come in: so the same message sent again is
// the same, and contexts look alike to a provider's prompt cache.
var messageMembers = [...]string{"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "audio", "annotations", "reasoning_content"}

// A messageBody is a message of a request: what Coppice should know, and the
// chat-completions message, whose values keep their bytes.
type messageBody struct {
	id       *string
	reason   *string // what the model thought before the message
	pinned   *bool
	metadata jsonObject
	members  [len(messageMembers)]chat.Member // whose names fields sets
}

// keptMembers stay in a message where they are null: they are stored so, or refused.
var keptMembers = append(messageMembers[:], "id", "parent_id", "move_head", "pinned", "metadata")

// asGiven is a message without its other members that are null, such as function_call. A
// client's library writes all that it knows.
func asGiven(o reader.Object) reader.Object { return o.WithoutNulls(keptMembers) }

// maxFields is how many fields a message has, with its destination.
const maxFields = len(messageMembers) + 6

func (m *messageBody) fields(before []field) []field {
	fields := append(before, field{"id", false, &m.id}, field{"reasoning", false, &m.reason}, field{"pinned", false, &m.pinned}, field{"metadata", false, &m.metadata})
	for i, name := range messageMembers {
		m.members[i].Name = name
		fields = append(fields, field{name, name == "role", &m.members[i].Value})
	}
	return fields
}

// addTo adds the message to those to append. The path is that of its object.
func (m *messageBody) addTo(c *format.Chain, path string) (err error) {
	n := tree.NewMessage{Reasoning: deref(m.reason), Pinned: deref(m.pinned), Metadata: json.RawMessage(m.metadata)}
	if n.ID, err = parseOptionalID(m.id, join(path, "id")); err != nil {
		return err
	}
	err = c.Add(n, m.members[:])
	if path == "message" && err != nil && fault.Of(err).Field == "" {
		return err // the only message is named by its members alone
	}
	return fault.At(err, path)
}

// only adds the message of a request that has one.
func (m *messageBody) only(path string, c *format.Chain) error {
	err := m.addTo(c, path)
	if len(c.Messages) > 1 {
		err = fault.New(fault.Invalid, "invalid_content", join(path, "content"), "Its parts are %d messages in chat completions, such as a tool's result and a user's text. Send it in messages, as the one message of the list.", len(c.Messages))
	}
	return err
}
