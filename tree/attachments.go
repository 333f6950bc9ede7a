package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

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

// MostAttachmentBytes is how many bytes an attachment may have.
func (s *Store) MostAttachmentBytes() int {
	if s.limits.AttachmentBytes == 0 {
		return DefaultAttachmentBytes
	}
	return min(s.limits.AttachmentBytes, MaxAttachmentBytes)
}

// AddAttachment stores a picture or file, if the tenant doesn't have it yet. The
// name is for people. Bytes that no model could be given are a fault.Invalid, too
// many are a fault.TooLarge, and a fault.Full if the tenant has no room for them.
//
// An attachment that no message names is deleted a day after it was last added.
// Messages that an import brought may name it already: their tokens are counted
// again, which takes time in proportion to their conversations.
func (s *Store) AddAttachment(ctx context.Context, name string, data []byte) (a Attachment, created bool, err error) {
	defer db.Wrap(&err, "tree.AddAttachment(%d bytes)", len(data))
	if most := s.MostAttachmentBytes(); len(data) > most {
		return a, false, fault.New(fault.TooLarge, "attachment_too_large", "", "The file has %d bytes, and %d is the most. Send a smaller one.", len(data), most)
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
	params := db.InsertAttachmentParams{
		TenantID: s.tenant, Hash: hash[:], MediaType: content.MediaType, Name: attach.Name(name), Size: int32(len(data)),
		Width: int32(content.Width), Height: int32(content.Height), Tokens: int32(s.counter.Count(content.Text)),
		Said: content.Text, Bytes: data, UploadedAt: now(),
	}
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.attachmentRoom(ctx, len(data)); err != nil {
			return err
		}
		if err := s.patiently(ctx, func() error { return s.q.LockUpload(ctx, s.tenant) }); err != nil { // an import may take long
			return err
		}
		if created, err = s.q.InsertAttachment(ctx, params); err != nil || !created {
			return err
		}
		return s.recount(ctx, hash[:])
	})
	return s.fromAttachment(db.ListAttachmentsRow{
		Hash: hash[:], MediaType: params.MediaType, Name: params.Name, Size: params.Size, Width: params.Width, Height: params.Height, Tokens: params.Tokens,
	}), created, err
}

// attachmentRoom refuses bytes that the tenant has no room for.
func (s *Store) attachmentRoom(ctx context.Context, bytes int) error {
	most := s.limits.AllAttachmentBytes
	if most == 0 {
		return nil
	}
	if err := s.q.LockAttachments(ctx, s.tenant); err != nil {
		return err
	}
	have, err := s.q.SumAttachments(ctx, s.tenant)
	if err != nil || have+int64(bytes) <= most {
		return err
	}
	return fault.New(fault.Full, "attachments_full", "", "The attachments have %d bytes together, and %d is the most. Delete messages that name some, or send a smaller file.", have, most)
}

// fromAttachment is the one converter of attachment rows.
func (s *Store) fromAttachment(row db.ListAttachmentsRow) Attachment {
	a := Attachment{MediaType: row.MediaType, Name: row.Name, Size: int(row.Size), Width: int(row.Width), Height: int(row.Height), textTokens: int(row.Tokens)}
	copy(a.Hash[:], row.Hash)
	a.Tokens = a.costAs(chat.Attachment{Name: a.Name}, s.counter)
	return a
}

// Attachment reads an attachment and its bytes. Another tenant's is a
// fault.NotFound, as one is that isn't there.
func (s *Store) Attachment(ctx context.Context, hash [sha256.Size]byte) (_ Attachment, data []byte, err error) {
	defer db.Wrap(&err, "tree.Attachment(%x)", hash)
	row, err := s.q.GetAttachment(ctx, db.GetAttachmentParams{TenantID: s.tenant, Hash: hash[:]})
	if err != nil {
		return Attachment{}, nil, orMissing(err, errAttachmentNotFound)
	}
	return s.fromAttachment(db.ListAttachmentsRow{
		Hash: row.Hash, MediaType: row.MediaType, Name: row.Name, Size: row.Size, Width: row.Width, Height: row.Height, Tokens: row.Tokens,
	}), row.Bytes, nil
}

// Attachments reads which of these attachments there are, without their bytes.
func (s *Store) Attachments(ctx context.Context, hashes ...[sha256.Size]byte) (_ map[[sha256.Size]byte]Attachment, err error) {
	defer db.Wrap(&err, "tree.Attachments(%d)", len(hashes))
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

// AttachmentText reads what a model is given of a file.
func (s *Store) AttachmentText(ctx context.Context, hash [sha256.Size]byte) (_ string, err error) {
	defer db.Wrap(&err, "tree.AttachmentText(%x)", hash)
	said, err := s.q.GetAttachmentText(ctx, db.GetAttachmentTextParams{TenantID: s.tenant, Hash: hash[:]})
	return said, orMissing(err, errAttachmentNotFound)
}

// ConversationAttachments reads which attachments the messages of a conversation
// name, in the order of their hashes. Some may be missing in the store.
func (s *Store) ConversationAttachments(ctx context.Context, conversationID uuid.UUID) (_ [][sha256.Size]byte, err error) {
	defer db.Wrap(&err, "tree.ConversationAttachments(%s)", conversationID)
	if _, err := s.Conversation(ctx, conversationID); err != nil {
		return nil, err
	}
	raw, err := s.q.ListConversationAttachments(ctx, db.ListConversationAttachmentsParams{ConversationID: toUUID(conversationID), TenantID: s.tenant})
	return fromHashes(raw), err
}

// AttachmentPatience is how long an attachment stays that no message names.
const AttachmentPatience = 24 * time.Hour

// SweepAttachments deletes attachments of all tenants that no message names and
// that were last added before a time, limit at most. It returns how many it
// deleted.
func (s *Store) SweepAttachments(ctx context.Context, before time.Time, limit int) (deleted int, err error) {
	defer db.Wrap(&err, "tree.SweepAttachments(%s)", before)
	for page := (db.ListOldAttachmentsParams{AfterHash: []byte{}, Before: before, RowLimit: int32(limit)}); deleted < limit; {
		rows, err := s.q.ListOldAttachments(ctx, page)
		if err != nil || len(rows) == 0 {
			return deleted, err
		}
		var tenants []string
		var hashes [][]byte
		for _, row := range rows {
			tenants, hashes = append(tenants, row.TenantID), append(hashes, row.Hash)
		}
		unused, err := s.unused(ctx, tenants, hashes)
		if err != nil {
			return deleted, err
		}
		for tenant, hashes := range unused {
			n, err := s.ForTenant(tenant).dropUnused(ctx, hashes[:min(len(hashes), limit-deleted)], before)
			if err != nil {
				return deleted, err
			}
			deleted += n
		}
		if len(rows) < limit {
			break
		}
		page.AfterTenant, page.AfterHash = rows[len(rows)-1].TenantID, rows[len(rows)-1].Hash
	}
	return deleted, nil
}

// unused are those of some attachments that no message names, by tenant.
func (s *Store) unused(ctx context.Context, tenants []string, hashes [][]byte) (map[string][][]byte, error) {
	rows, err := s.q.ListUsedAttachments(ctx, db.ListUsedAttachmentsParams{TenantIds: tenants, Hashes: hashes})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, row := range rows {
		used[string(row.Hash)+row.TenantID] = true // hashes have one length
	}
	of := map[string][][]byte{}
	for i, tenant := range tenants {
		if !used[string(hashes[i])+tenant] {
			of[tenant] = append(of[tenant], hashes[i])
		}
	}
	return of, nil
}

// dropUnused deletes those of some attachments that no message names. It comes
// after the commit of what deleted the messages: so it waits for no conversation
// while it holds attachments.
func (s *Store) dropUnused(ctx context.Context, hashes [][]byte, before time.Time) (deleted int, err error) {
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.whereDistributed(ctx, func() error {
			return s.q.AwaitNamed(ctx, db.AwaitNamedParams{TenantID: s.tenant, Hashes: hashes})
		}); err != nil {
			return err
		}
		if _, err := s.q.LockUnusedAttachments(ctx, db.LockUnusedAttachmentsParams{TenantID: s.tenant, Hashes: hashes}); err != nil {
			return err
		}
		// What the appends committed only a statement of its own sees.
		unused, err := s.unused(ctx, slices.Repeat([]string{s.tenant}, len(hashes)), hashes)
		if err != nil || len(unused) == 0 {
			return err
		}
		n, err := s.q.DeleteAttachments(ctx, db.DeleteAttachmentsParams{TenantID: s.tenant, Hashes: unused[s.tenant], Before: before})
		deleted = int(n)
		return err
	})
	return deleted, err
}

// dropping locks a conversation, runs f, which deletes messages of it, and then
// deletes the attachments that nothing names any more.
func (s *Store) dropping(ctx context.Context, conversationID uuid.UUID, f func(*Store, db.Conversation) error) error {
	var named [][]byte
	err := s.inTx(ctx, func(s *Store) error {
		c, err := s.lock(ctx, conversationID)
		if err != nil {
			return err
		}
		if named, err = s.q.ListConversationAttachments(ctx, db.ListConversationAttachmentsParams{ConversationID: c.ID, TenantID: s.tenant}); err != nil {
			return err
		}
		return f(s, c)
	})
	if err == nil && len(named) > 0 {
		// The messages are gone, whatever comes of this: a sweep does it again.
		_, _ = s.dropUnused(ctx, named, now().Add(time.Minute))
	}
	return err
}

// use notes which attachments the drafts name, which must all be there if strict.
// They stay until the transaction ends, and then because a message names them.
func (s *Store) use(ctx context.Context, conversationID uuid.UUID, drafts []*draft, strict bool) error {
	params := db.AddAttachmentUsesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant}
	for _, d := range drafts {
		for _, a := range d.attachments {
			params.MessageIds, params.Hashes = append(params.MessageIds, toUUID(d.ID)), append(params.Hashes, a.Hash[:])
		}
	}
	if len(params.Hashes) == 0 {
		return nil
	}
	if err := s.whereDistributed(ctx, func() error {
		return s.q.AwaitUnused(ctx, db.AwaitUnusedParams{TenantID: s.tenant, Hashes: params.Hashes})
	}); err != nil {
		return err
	}
	held, err := s.q.HoldAttachments(ctx, db.HoldAttachmentsParams{TenantID: s.tenant, Hashes: params.Hashes})
	if err != nil {
		return err
	}
	if strict && len(held) < len(distinct(params.Hashes)) {
		return errAttachmentNotFound // deleted since they were weighed
	}
	return s.q.AddAttachmentUses(ctx, params)
}

// copyUses notes for the copies of messages what the messages name.
func (s *Store) copyUses(ctx context.Context, from, to uuid.UUID, ids []pgtype.UUID) error {
	rows, err := s.q.ListAttachmentUses(ctx, db.ListAttachmentUsesParams{ConversationID: toUUID(from), MessageIds: ids})
	if err != nil || len(rows) == 0 {
		return err
	}
	params := db.AddAttachmentUsesParams{ConversationID: toUUID(to), TenantID: s.tenant}
	for _, row := range rows {
		params.MessageIds = append(params.MessageIds, toUUID(copyID(to, uuid.UUID(row.MessageID.Bytes))))
		params.Hashes = append(params.Hashes, row.Hash)
	}
	return s.q.AddAttachmentUses(ctx, params)
}

// weigh counts what the attachments of drafts cost, which must all be there. It is
// one query.
func (s *Store) weigh(ctx context.Context, drafts []*draft) error {
	var hashes [][sha256.Size]byte
	for _, d := range drafts {
		hashes = appendHashes(hashes, d.attachments)
	}
	there, err := s.Attachments(ctx, hashes...)
	if err != nil {
		return err
	}
	for i, d := range drafts {
		if err := checkNamed(d.attachments, there); err != nil {
			return inChain(err, drafts, i)
		}
		d.weigh(s.counter, there)
	}
	return nil
}

// weigh counts a draft's attachments as far as they are there.
func (d *draft) weigh(c tokens.Counter, there map[[sha256.Size]byte]Attachment) {
	if len(d.attachments) > 0 {
		d.tokenCount = costOf(d.Message, c, there)
	}
}

// checkNamed refuses attachments that aren't there, or are named as another kind.
func checkNamed(named []chat.Attachment, there map[[sha256.Size]byte]Attachment) error {
	for _, a := range named {
		switch stored, ok := there[a.Hash]; {
		case !ok:
			e := *errAttachmentNotFound
			e.Field = "content"
			return &e
		case a.Image != stored.Image():
			return fault.New(fault.Invalid, "invalid_attachment", "content", "A part of the type image_url names a file, or a part of the type file a picture. Use the part that the upload's answer gave.")
		}
	}
	return nil
}

// checkAttachments refuses addresses that can't be read.
func checkAttachments(all []chat.Attachment) error {
	for _, a := range all {
		if !a.Valid {
			return fault.New(fault.Invalid, "invalid_attachment", "content", "An address that begins with %s goes on with a SHA-256 in lower-case hex. Use the part that the upload's answer gave.", chat.AttachmentScheme)
		}
	}
	return nil
}

func appendHashes(dst [][sha256.Size]byte, named []chat.Attachment) [][sha256.Size]byte {
	for _, a := range named {
		dst = append(dst, a.Hash)
	}
	return dst
}

func distinct(hashes [][]byte) map[string]bool {
	out := make(map[string]bool, len(hashes))
	for _, h := range hashes {
		out[string(h)] = true
	}
	return out
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
