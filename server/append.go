package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/rawjson"
	"github.com/coppice-chat/coppice/tree"
)

// appendBody is the schema Append: one message or a chain.
type appendBody struct {
	parentID uuid.UUID // uuid.Nil for a new root
	keepHead bool
	chain    bool
	messages []tree.NewMessage // one where it is no chain
}

// read tells the two apart by the member "messages".
func (a *appendBody) read(o object) error {
	messages, chain := o.get("messages")
	s := shapeOf(reflect.TypeFor[NewMessage]())
	if chain {
		s = shapeOf(reflect.TypeFor[NewChain]())
	}
	if err := s.check(o, ""); err != nil {
		return err
	}
	a.chain = chain
	if err := a.readPlace(o); err != nil {
		return err
	}
	if !chain {
		m, err := readMessage(o, "")
		a.messages = []tree.NewMessage{m}
		return err
	}
	if messages[0] != '[' {
		return problemf(CodeWrongType, "messages", "This must be an array of messages.")
	}
	elements := slices.Collect(rawjson.Elements(messages))
	a.messages = make([]tree.NewMessage, len(elements))
	s = shapeOf(reflect.TypeFor[ChainMessage]())
	for i, element := range elements {
		path := fmt.Sprintf("messages[%d]", i)
		if element[0] != '{' {
			return problemf(CodeWrongType, path, "A message must be a JSON object.")
		}
		o := membersOf(element)
		if err := s.check(o, path); err != nil {
			return err
		}
		var err error
		if a.messages[i], err = readMessage(o, path); err != nil {
			return err
		}
	}
	return nil
}

// readPlace reads where the message goes.
func (a *appendBody) readPlace(o object) (err error) {
	if parent, _ := o.get("parent_id"); string(parent) != "null" {
		if a.parentID, err = readID(parent, "parent_id"); err != nil {
			return err
		}
	}
	if move, ok := o.get("move_head"); ok {
		moves := true
		if err := bindValue(move, "move_head", false, reflect.ValueOf(&moves).Elem()); err != nil {
			return err
		}
		a.keepHead = !moves
	}
	return nil
}

// said are the members of a chat-completions message, in the order in which
// it is kept, whatever order they come in: so the same message sent again is
// the same, and contexts look alike to a provider's prompt cache.
var said = []string{"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "audio", "annotations", "reasoning_content"}

// readMessage takes a message apart: what Coppice should know, and the
// chat-completions message, the values of which keep their bytes. What that
// one says is for the tree to check.
func readMessage(o object, path string) (m tree.NewMessage, err error) {
	if id, ok := o.get("id"); ok {
		if m.ID, err = readID(id, join(path, "id")); err != nil {
			return m, err
		}
	}
	if pinned, ok := o.get("pinned"); ok {
		if err = bindValue(pinned, join(path, "pinned"), false, reflect.ValueOf(&m.Pinned).Elem()); err != nil {
			return m, err
		}
	}
	if metadata, ok := o.get("metadata"); ok {
		if err = bindValue(metadata, join(path, "metadata"), false, reflect.ValueOf((*jsonObject)(&m.Metadata)).Elem()); err != nil {
			return m, err
		}
	}
	size := len("{}")
	for _, member := range o {
		size += len(member.name) + len(member.value) + len(`"":,`)
	}
	body := append(make([]byte, 0, size), '{')
	for _, name := range said {
		value, ok := o.get(name)
		if !ok {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(body, '"'), name...)
		body = append(append(body, `":`...), value...)
	}
	m.Body = append(body, '}')
	return m, nil
}

// readID reads an id that a body brings.
func readID(raw json.RawMessage, path string) (uuid.UUID, error) {
	var s string
	if err := bindValue(raw, path, false, reflect.ValueOf(&s).Elem()); err != nil {
		return uuid.Nil, err
	}
	return parseID(s, path)
}
