package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tokens"
)

// MaxAttachmentBytes is the size of an attachment at most, whatever the limits
// are: the database gives it back in one piece.
const MaxAttachmentBytes = 256 << 20

// DefaultAttachmentBytes is Limits.AttachmentBytes where that is 0.
const DefaultAttachmentBytes = 20 << 20

// An Attachment is a picture or file that messages can name. A tenant has it once,
// however often it is uploaded and named.
type Attachment struct {
	Hash          [sha256.Size]byte // of its bytes, and its id
	MediaType     string            // as its bytes say
	Name          string            // of the file that was uploaded first
	Size          int               // in bytes
	Width, Height int               // of a picture, in pixels; 0 of a file
	Tokens        int               // that it costs in a context; of a picture in high detail

	textTokens int // of a file, without the line of its name
}

// Image reports whether it is a picture.
func (a Attachment) Image() bool { return attach.Shown(a.MediaType) }

// Part returns the part of a content that names the attachment.
func (a Attachment) Part() chat.Part { return chat.AttachmentPart(a.Hash, a.Name, a.Image()) }

// AppendJSON appends the attachment's JSON, in the REST API's shape.
func (a Attachment) AppendJSON(dst []byte) []byte {
	raw, _ := json.Marshal(struct { // strings and numbers always marshal
		Hash      string          `json:"hash"`
		MediaType string          `json:"media_type"`
		Name      string          `json:"name"`
		Size      int             `json:"size"`
		Width     int             `json:"width"`
		Height    int             `json:"height"`
		Tokens    int             `json:"tokens"`
		Part      json.RawMessage `json:"part"`
	}{hex.EncodeToString(a.Hash[:]), a.MediaType, a.Name, a.Size, a.Width, a.Height, a.Tokens, a.Part().Raw})
	return append(dst, raw...)
}

// MarshalJSON returns the JSON of AppendJSON.
func (a Attachment) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }

var errAttachmentNotFound = fault.New(fault.NotFound, "attachment_not_found", "",
	"There is no attachment of this hash. Upload it (POST /v1/attachments), and send the message then.")

// Most is how many bytes an attachment may have.
func (s *Attachments) Most() int {
	if s.limits.AttachmentBytes == 0 {
		return DefaultAttachmentBytes
	}
	return min(s.limits.AttachmentBytes, MaxAttachmentBytes)
}

// Add stores a picture or file, if the tenant doesn't have it yet. The
// name is for people. Bytes that no model could be given are a fault.Invalid, too
// many are a fault.TooLarge, and a fault.Full if the tenant has no room for them.
//
// An attachment that no message names is deleted a day after it was last added.
// Messages that an import brought may name it already: their tokens are counted
// again, which takes time in proportion to their conversations.
func (s *Attachments) Add(ctx context.Context, name string, data []byte) (a Attachment, created bool, err error) {
	defer db.Wrap(&err, "tree.Attachments.Add(%d bytes)", len(data))
	if most := s.Most(); len(data) > most {
		return a, false, fault.New(fault.TooLarge, "attachment_too_large", "", "The file has %s, and %s is the most. Send a smaller one.", fault.Bytes(len(data)), fault.Bytes(most))
	}
	hash := sha256.Sum256(data)
	there, err := s.q.TouchAttachment(ctx, db.TouchAttachmentParams{UploadedAt: now(), TenantID: s.tenant, Hash: hash[:]})
	if !isNoRows(err) {
		return s.fromAttachment(db.ListAttachmentsRow{Hash: hash[:], MediaType: there.MediaType, Name: there.Name, Size: there.Size, Width: there.Width, Height: there.Height, Tokens: there.Tokens}), false, err
	}
	content, err := attach.Read(ctx, data)
	if err != nil {
		return a, false, err
	}
	counter := tokens.Bind(ctx, s.counter)
	textTokens := counter.Count(content.Text)
	if err := counter.Err(); err != nil {
		return a, false, err
	}
	params := db.InsertAttachmentParams{
		TenantID: s.tenant, Hash: hash[:], MediaType: content.MediaType, Name: attach.Name(name), Size: int32(len(data)),
		Width: int32(content.Width), Height: int32(content.Height), Tokens: int32(textTokens),
		Said: content.Text, Bytes: data, UploadedAt: now(),
	}
	err = s.store().inTx(ctx, func(s *Store) error {
		if err := s.attachmentRoom(ctx, hash[:], len(data)); err != nil {
			return err
		}
		if err := s.allowLongStatements(ctx, func() error { return s.q.LockUpload(ctx, s.tenant) }); err != nil { // an import may take long
			return err
		}
		stored, err := s.q.InsertAttachment(ctx, params)
		if created, params.Name = stored.Created, stored.Name; err != nil || !created {
			return err
		}
		s.count(0, len(data))
		return s.recount(ctx, hash[:])
	})
	return s.fromAttachment(db.ListAttachmentsRow{
		Hash: hash[:], MediaType: params.MediaType, Name: params.Name, Size: params.Size, Width: params.Width, Height: params.Height, Tokens: params.Tokens,
	}), created, err
}

// attachmentRoom refuses the bytes of an attachment that the tenant has no room for.
func (s *Store) attachmentRoom(ctx context.Context, hash []byte, bytes int) error {
	most := s.limits.AllAttachmentBytes
	if most == 0 {
		return nil
	}
	if err := s.lockKind(ctx, storingAttachments); err != nil {
		return err
	}
	have, err := s.q.SumAttachments(ctx, db.SumAttachmentsParams{TenantID: s.tenant, Hash: hash})
	if err != nil || have+int64(bytes) <= most {
		return err
	}
	return fault.New(fault.Full, "attachments_full", "", "The attachments have %s together, and %s is the most. Delete messages that name some, or send a smaller file.", fault.Bytes(have), fault.Bytes(most))
}

// fromAttachment is the one converter of attachment rows.
func (s *Attachments) fromAttachment(row db.ListAttachmentsRow) Attachment {
	a := Attachment{MediaType: row.MediaType, Name: row.Name, Size: int(row.Size), Width: int(row.Width), Height: int(row.Height), textTokens: int(row.Tokens)}
	copy(a.Hash[:], row.Hash)
	a.Tokens = a.costAs(chat.Attachment{Name: a.Name}, s.counter)
	return a
}

// One reads an attachment and its bytes. Another tenant's is a
// fault.NotFound, as one is that isn't there.
func (s *Attachments) One(ctx context.Context, hash [sha256.Size]byte) (_ Attachment, data []byte, err error) {
	defer db.Wrap(&err, "tree.Attachments.One(%x)", hash)
	if !s.store().ReadsAll() {
		named, err := s.q.NamesAttachment(ctx, db.NamesAttachmentParams{TenantID: s.tenant, Hash: hash[:], Reader: s.reader})
		if err == nil && !named {
			err = errAttachmentNotFound
		}
		if err != nil {
			return Attachment{}, nil, err
		}
	}
	row, err := s.q.GetAttachment(ctx, db.GetAttachmentParams{TenantID: s.tenant, Hash: hash[:]})
	if err != nil {
		return Attachment{}, nil, orMissing(err, errAttachmentNotFound)
	}
	return s.fromAttachment(db.ListAttachmentsRow{
		Hash: row.Hash, MediaType: row.MediaType, Name: row.Name, Size: row.Size, Width: row.Width, Height: row.Height, Tokens: row.Tokens,
	}), row.Bytes, nil
}

// All reads which of these attachments there are, without their bytes.
func (s *Attachments) All(ctx context.Context, hashes ...[sha256.Size]byte) (_ map[[sha256.Size]byte]Attachment, err error) {
	defer db.Wrap(&err, "tree.Attachments.All(%d)", len(hashes))
	if len(hashes) == 0 {
		return nil, nil
	}
	rows, err := s.q.ListAttachments(ctx, db.ListAttachmentsParams{TenantID: s.tenant, Hashes: rawHashes(hashes)})
	out := make(map[[sha256.Size]byte]Attachment, len(rows))
	for _, row := range rows {
		a := s.fromAttachment(row)
		out[a.Hash] = a
	}
	return out, err
}

// Text reads what a model is given of a file.
func (s *Attachments) Text(ctx context.Context, hash [sha256.Size]byte) (_ string, err error) {
	defer db.Wrap(&err, "tree.Attachments.Text(%x)", hash)
	said, err := s.q.GetAttachmentText(ctx, db.GetAttachmentTextParams{TenantID: s.tenant, Hash: hash[:]})
	return said, orMissing(err, errAttachmentNotFound)
}

// FileTexts returns the first characters of what files say, so many of each. Files
// that aren't there, and pictures, are left out.
func (s *Index) FileTexts(ctx context.Context, hashes [][sha256.Size]byte, most int) (_ map[[sha256.Size]byte]string, err error) {
	defer db.Wrap(&err, "tree.Index.FileTexts(%d)", len(hashes))
	rows, err := s.q.ListFileTexts(ctx, db.ListFileTextsParams{TenantID: s.tenant, Hashes: rawHashes(hashes), Most: int32(most)})
	texts := make(map[[sha256.Size]byte]string, len(rows))
	for _, row := range rows {
		texts[[sha256.Size]byte(row.Hash)] = row.Said
	}
	return texts, err
}

// ConversationAttachments reads which attachments the messages of a conversation
// name, in the order of their hashes. Some may be missing in the store.
func (s *Index) ConversationAttachments(ctx context.Context, conversationID uuid.UUID) (_ [][sha256.Size]byte, err error) {
	defer db.Wrap(&err, "tree.Index.ConversationAttachments(%s)", conversationID)
	if _, err := s.store().Conversation(ctx, conversationID); err != nil {
		return nil, err
	}
	raw, err := s.q.ListConversationAttachments(ctx, db.ListConversationAttachmentsParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	return fromHashes(raw), err
}

func rawHashes(hashes [][sha256.Size]byte) [][]byte {
	out := make([][]byte, len(hashes))
	for i := range hashes {
		out[i] = hashes[i][:]
	}
	return out
}

func fromHashes(raw [][]byte) [][sha256.Size]byte {
	out := make([][sha256.Size]byte, 0, len(raw))
	for _, h := range raw {
		if len(h) == sha256.Size {
			out = append(out, [sha256.Size]byte(h))
		}
	}
	return out
}
