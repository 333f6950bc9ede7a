package tree

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Limits of an Annotation.
const (
	MaxLabelBytes = 200
	MaxNoteBytes  = 4000
)

// An Annotation is what readers say of a message, or of the branch that ends in it. No
// model reads it, and a fork doesn't have it. The zero value says nothing.
type Annotation struct {
	Rating int    `json:"rating,omitempty"` // 1 for good, -1 for bad, 0 for none
	Label  string `json:"label,omitempty"`  // a few words by which it is found again, in one line
	Note   string `json:"note,omitempty"`
}

// AppendJSON appends the members that say something, each after a comma.
func (a Annotation) AppendJSON(dst []byte) []byte {
	if a.Rating != 0 {
		dst = appendInt(dst, `,"rating":`, a.Rating)
	}
	if a.Label != "" {
		dst = appendString(dst, `,"label":`, a.Label)
	}
	if a.Note != "" {
		dst = appendString(dst, `,"note":`, a.Note)
	}
	return dst
}

// Check returns what is wrong with it as an annotation of a message: a fault.Invalid or a
// fault.TooLarge.
func (a Annotation) Check(m *chat.Message) error {
	for _, name := range []string{"rating", "label", "note"} {
		if m.Other(name) != nil && a != (Annotation{}) {
			return fault.New(fault.Invalid, "invalid_parameter", name, "The message's body has a member of this name, beside which no annotation can stand.")
		}
	}
	if a.Rating < -1 || a.Rating > 1 {
		return fault.New(fault.Invalid, "invalid_parameter", "rating", "A rating is 1 or -1, or null for none.")
	}
	if strings.ContainsFunc(a.Label, unicode.IsControl) {
		return fault.New(fault.Invalid, "invalid_character", "label", "A label is one line, without control characters. Longer remarks go into note.")
	}
	for _, text := range []struct {
		field, value string
		most         int
	}{{"label", a.Label, MaxLabelBytes}, {"note", a.Note, MaxNoteBytes}} {
		switch {
		case len(text.value) > text.most:
			return fault.New(fault.TooLarge, "metadata_too_large", text.field, "It has %d bytes, and %d is the most. Shorten it.", len(text.value), text.most)
		case !utf8.ValidString(text.value):
			return fault.New(fault.Invalid, "invalid_utf8", text.field, "It is not valid UTF-8.")
		case strings.Contains(text.value, "\x00"):
			return fault.New(fault.Invalid, "invalid_character", text.field, "It has a NUL character, which Postgres can't store. Take it out.")
		}
	}
	return nil
}

// fromAnnotation reads what a query gives of a row of annotations.
func fromAnnotation(row []byte) (a Annotation) {
	if len(row) > 0 {
		_ = json.Unmarshal(row, &a) // which Postgres wrote
	}
	return a
}

// A MessageUpdate changes the members that are not nil.
type MessageUpdate struct {
	Pinned *bool   // pinned messages stay verbatim when a compaction folds them. What a summary keeps already stays as it is
	Rating *int    // 0 for none
	Label  *string // "" for none
	Note   *string // "" for none
}

// annotation is that of a message after the update.
func (u MessageUpdate) annotation(a Annotation) Annotation {
	if u.Rating != nil {
		a.Rating = *u.Rating
	}
	if u.Label != nil {
		a.Label = *u.Label
	}
	if u.Note != nil {
		a.Note = *u.Note
	}
	return a
}

// UpdateMessage pins a message or takes its pin away, and changes its annotation.
// Neither what it says nor where it stands changes. What can't be an annotation is a
// fault.Invalid or a fault.TooLarge, and an absent message a fault.NotFound.
func (s *Store) UpdateMessage(ctx context.Context, conversationID, messageID uuid.UUID, u MessageUpdate) (_ Message, err error) {
	defer db.Wrap(&err, "tree.UpdateMessage(%s, %s)", conversationID, messageID)
	var m Message
	err = s.inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		if m, err = s.Message(ctx, conversationID, messageID); err != nil {
			return err
		}
		if u.Pinned != nil && m.Pinned != *u.Pinned {
			m.Pinned = *u.Pinned
			params := db.PinMessageParams{ConversationID: toUUID(conversationID), ID: toUUID(messageID), Pinned: m.Pinned}
			if err := s.q.PinMessage(ctx, params); err != nil {
				return err
			}
			if err := s.note(ctx, Change{ConversationID: conversationID, Kind: MessagePinned, MessageID: messageID, ParentID: m.ParentID}); err != nil {
				return err
			}
		}
		a := u.annotation(m.Annotation)
		if a == m.Annotation {
			return nil
		}
		if err := a.Check(chat.Read(m.Body)); err != nil {
			return err
		}
		m.Annotation = a
		if err := s.annotate(ctx, m); err != nil {
			return err
		}
		return s.note(ctx, Change{ConversationID: conversationID, Kind: MessageAnnotated, MessageID: messageID, ParentID: m.ParentID})
	})
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

// annotate stores the annotation of a message.
func (s *Store) annotate(ctx context.Context, m Message) error {
	if m.Annotation == (Annotation{}) {
		return s.q.DeleteAnnotation(ctx, db.DeleteAnnotationParams{ConversationID: toUUID(m.ConversationID), MessageID: toUUID(m.ID)})
	}
	return s.q.AnnotateMessage(ctx, db.AnnotateMessageParams(annotationRow(m.ConversationID, m.ID, m.Annotation)))
}

func annotationRow(conversationID, messageID uuid.UUID, a Annotation) db.CopyAnnotationsParams {
	return db.CopyAnnotationsParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), Rating: int16(a.Rating), Label: a.Label, Note: a.Note}
}
