package tree

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// UnusedAttachmentAge is how long an attachment stays that no message names.
const UnusedAttachmentAge = 24 * time.Hour

// An AttachmentSweep looks for attachments of all tenants that no message names, some
// at a time, in the order of tenants and hashes. It begins with the first.
type AttachmentSweep struct {
	ServerID string // one server of the database sweeps
	tenant   string
	hash     []byte // of the last one that was looked at
}

// sweepLease is how long a server that swept keeps the others from it.
const sweepLease = 3 * time.Hour

func (a *AttachmentSweep) lead() Lead {
	return Lead{Follower: "attachments", ServerID: a.ServerID, Lease: sweepLease}
}

// Leave lets another server sweep at once. It takes a second at most.
func (a *AttachmentSweep) Leave(s *Store) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.lead().Leave(ctx, s) // else its lease runs out
}

// Next looks at the next attachments that were last added before a time, limit at
// most, and deletes those that no message names. It returns how many it deleted.
// After the last one it begins again. While another server sweeps, it does nothing.
func (a *AttachmentSweep) Next(ctx context.Context, s *Store, before time.Time, limit int) (deleted int, err error) {
	defer db.Wrap(&err, "tree.AttachmentSweep.Next(%s)", before)
	if leads, _, _, err := a.lead().Renew(ctx, s); err != nil || !leads {
		return 0, err
	}
	page := db.ListOldAttachmentsParams{AfterTenant: a.tenant, AfterHash: slices.Concat([]byte{}, a.hash), Before: before, RowLimit: int32(limit)}
	rows, err := s.q.ListOldAttachments(ctx, page)
	if err != nil {
		return 0, err
	}
	var tenants []string
	var hashes [][]byte
	for _, row := range rows {
		tenants, hashes = append(tenants, row.TenantID), append(hashes, row.Hash)
	}
	unused, err := s.unused(ctx, tenants, hashes)
	if err != nil {
		return 0, err
	}
	for tenant, hashes := range unused {
		n, err := s.ForTenant(tenant).dropUnused(ctx, hashes, func([]byte) time.Time { return before })
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	if a.tenant, a.hash = "", nil; len(rows) == limit {
		a.tenant, a.hash = tenants[limit-1], hashes[limit-1]
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

// dropUnused deletes those of some attachments that no message names, and that were
// last added before a time of their own. It comes after the commit of what deleted
// the messages: so it waits for no conversation while it holds attachments.
func (s *Store) dropUnused(ctx context.Context, hashes [][]byte, before func(hash []byte) time.Time) (deleted int, err error) {
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.whereDistributed(ctx, func() error {
			return s.q.AwaitNamed(ctx, db.AwaitNamedParams{TenantID: s.tenant, Hashes: hashes})
		}); err != nil {
			return err
		}
		// One that isn't there to be locked may be uploaded and named at any moment.
		rows, err := s.q.LockUnusedAttachments(ctx, db.LockUnusedAttachmentsParams{TenantID: s.tenant, Hashes: hashes})
		var locked [][]byte
		for _, row := range rows {
			if row.UploadedAt.Before(before(row.Hash)) {
				locked = append(locked, row.Hash)
			}
		}
		if err != nil || len(locked) == 0 {
			return err
		}
		// What the appends committed only a statement of its own sees.
		unused, err := s.unused(ctx, slices.Repeat([]string{s.tenant}, len(locked)), locked)
		if err != nil || len(unused) == 0 {
			return err
		}
		n, err := s.q.DeleteAttachments(ctx, db.DeleteAttachmentsParams{TenantID: s.tenant, Hashes: unused[s.tenant]})
		deleted = int(n)
		return err
	})
	return deleted, err
}

// dropping locks a conversation, runs f, which deletes messages of it, and then
// deletes the attachments that nothing names any more. One that was added again
// since a message named it stays for UnusedAttachmentAge, as the message that names
// it next is yet to come.
func (s *Store) dropping(ctx context.Context, conversationID uuid.UUID, f func(*Store, db.Conversation) error) error {
	var hashes [][]byte
	namedAt := map[string]time.Time{}
	err := s.inTurn(ctx, conversationID, func(s *Store) error {
		c, err := s.lock(ctx, conversationID)
		if err != nil {
			return err
		}
		rows, err := s.q.ListNamedAttachments(ctx, c.ID)
		if err != nil {
			return err
		}
		for _, row := range rows {
			hashes = append(hashes, row.Hash)
			namedAt[string(row.Hash)] = row.NamedAt
		}
		return f(s, c)
	})
	if err == nil && len(hashes) > 0 {
		// The messages are gone, whatever comes of this: a sweep does it again.
		at := now()
		old := at.Add(-UnusedAttachmentAge) // an imported message may be older than its file, or be dated ahead
		_, _ = s.dropUnused(ctx, hashes, func(hash []byte) time.Time {
			if named := namedAt[string(hash)]; named.After(old) && !named.After(at) {
				return named
			}
			return old
		})
	}
	return err
}

// use notes which attachments the drafts name, which must all be there. They stay
// until the transaction ends, and then because a message names them.
func (s *Store) use(ctx context.Context, conversationID uuid.UUID, drafts []*draft) error {
	params := s.usesOf(conversationID, drafts)
	held, err := s.hold(ctx, params.Hashes)
	if err != nil || len(params.Hashes) == 0 {
		return err
	}
	if held < len(distinct(params.Hashes)) {
		return errAttachmentNotFound // deleted since they were weighed
	}
	return s.q.AddAttachmentUses(ctx, params)
}

// usesOf are the attachments that the drafts name.
func (s *Store) usesOf(conversationID uuid.UUID, drafts []*draft) db.AddAttachmentUsesParams {
	params := db.AddAttachmentUsesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader}
	for _, d := range drafts {
		for _, a := range d.attachments {
			params.MessageIds, params.Hashes = append(params.MessageIds, toUUID(d.ID)), append(params.Hashes, a.Hash[:])
		}
	}
	return params
}

// hold keeps attachments until the transaction ends, and tells how many of them
// there are.
func (s *Store) hold(ctx context.Context, hashes [][]byte) (held int, err error) {
	if len(hashes) == 0 {
		return 0, nil
	}
	if err := s.whereDistributed(ctx, func() error {
		return s.q.AwaitUnused(ctx, db.AwaitUnusedParams{TenantID: s.tenant, Hashes: hashes})
	}); err != nil {
		return 0, err
	}
	rows, err := s.q.HoldAttachments(ctx, db.HoldAttachmentsParams{TenantID: s.tenant, Hashes: hashes})
	return len(rows), err
}

// copyUses notes for the copies of messages what the messages name.
func (s *Store) copyUses(ctx context.Context, from, to uuid.UUID, ids []pgtype.UUID, copied func(uuid.UUID) uuid.UUID) error {
	rows, err := s.q.ListAttachmentUses(ctx, db.ListAttachmentUsesParams{ConversationID: toUUID(from), MessageIds: ids})
	if err != nil || len(rows) == 0 {
		return err
	}
	params := db.AddAttachmentUsesParams{ConversationID: toUUID(to), TenantID: s.tenant, Reader: s.reader}
	for _, row := range rows {
		params.MessageIds = append(params.MessageIds, toUUID(copied(uuid.UUID(row.MessageID.Bytes))))
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
	there, err := s.Attachments().All(ctx, hashes...)
	if err != nil {
		return err
	}
	for i, d := range drafts {
		if err := checkNamed(d.attachments, there); err != nil {
			return inChain(err, drafts, i)
		}
		if len(d.attachments) > 0 {
			if d.tokenCount, err = s.cost(ctx, d.Message, there); err != nil {
				return err
			}
		}
	}
	return nil
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
