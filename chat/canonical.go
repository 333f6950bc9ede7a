package chat

import (
	"crypto/sha256"
	"encoding/binary"
)

// AppendCanonical appends a message's canonical form. Two messages that mean the
// same have the same canonical form, however a client wrote them.
//
// The form has the role (developer counts as system), the text parts that aren't
// empty, the refusals that aren't empty, each in a part or in the member refusal,
// the other parts as compact JSON, the id, name and arguments of each tool call
// verbatim, the id of the call that the message answers, and the name if it isn't
// empty. Every field is preceded by its length, so that two different messages
// never have the same bytes.
//
// The form serves recognition alone. What is stored and shown are the bytes that
// came.
func (m *Message) AppendCanonical(dst []byte) []byte {
	role := m.Role
	if role == Developer {
		role = System
	}
	dst = appendField(dst, 'r', string(role))
	for _, p := range m.Parts {
		switch {
		case !p.IsText():
			dst = appendField(dst, 'p', string(p.Encode()))
		case p.Text == "":
		case p.Type == "refusal":
			dst = appendField(dst, 'd', p.Text)
		default:
			dst = appendField(dst, 't', p.Text)
		}
	}
	if m.Refusal != nil && *m.Refusal != "" {
		dst = appendField(dst, 'd', *m.Refusal)
	}
	for _, c := range m.Calls {
		dst = appendField(dst, 'c', c.ID)
		dst = appendField(dst, 'f', c.Name)
		dst = appendField(dst, 'a', c.Arguments)
	}
	if m.Answers() != "" {
		dst = appendField(dst, 'i', *m.CallID)
	}
	if m.Name != nil && *m.Name != "" {
		dst = appendField(dst, 'n', *m.Name)
	}
	return dst
}

func appendField(dst []byte, kind byte, text string) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(len(text)))
	return append(dst, text...)
}

// Form is SHA-256 of a message's canonical form.
func (m *Message) Form() [sha256.Size]byte {
	return sha256.Sum256(m.AppendCanonical(make([]byte, 0, len(m.Raw))))
}

// A PathHash identifies a message together with all messages above it, by their
// canonical forms. The zero PathHash is the parent of every root.
type PathHash [16]byte

// Child returns the path hash of a message below p: the first half of SHA-256 over p
// and the message's form. The form goes in as its own hash, so that a database
// that has p needs no more than that of the message.
func (p PathHash) Child(m *Message) PathHash { return p.ChildOf(m.Form()) }

// ChildOf is Child of a message of which the form is known.
func (p PathHash) ChildOf(form [sha256.Size]byte) PathHash {
	sum := sha256.Sum256(append(p[:], form[:]...))
	return PathHash(sum[:len(p)])
}
