package tree

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Share is a link by which anybody reads one branch, up to the message that
// was its head when the link was made.
type Share struct {
	ID             uuid.UUID
	ConversationID uuid.UUID
	HeadID         uuid.UUID
	Summaries      bool // the summary that applies is shown, too
	CreatedAt      time.Time
	ExpiresAt      time.Time // zero: it doesn't expire
}

// NewShare is a link to be made.
type NewShare struct {
	ID        uuid.UUID // uuid.Nil: a new UUIDv7
	Summaries bool
	ExpiresAt time.Time // zero: never
}

// MaxShares is how many links a conversation has at most.
const MaxShares = 100

var (
	errShareNotFound  = fault.New(fault.NotFound, "share_not_found", "", "The conversation has no link with this id. List its links to see which there are.")
	errSharedNotFound = fault.New(fault.NotFound, "shared_not_found", "", "This link opens nothing: it was revoked, it has expired, or it never was. Ask the sender for a new one.")
)

// Create makes a link to a branch. The token is what the link shows; it is
// not stored and can't be had again. A headID of uuid.Nil is the active head.
func (s *Shares) Create(ctx context.Context, conversationID, headID uuid.UUID, n NewShare) (share Share, token string, err error) {
	defer db.Wrap(&err, "tree.Shares.Create(%s, head %s)", conversationID, headID)
	p := db.InsertShareParams{ConversationID: toUUID(conversationID), ID: toUUID(n.ID), Summaries: n.Summaries, CreatedAt: now()}
	if n.ID == uuid.Nil {
		p.ID = toUUID(newID())
	}
	if !n.ExpiresAt.IsZero() {
		p.ExpiresAt = pgtype.Timestamptz{Time: stamp(n.ExpiresAt), Valid: true}
		if !n.ExpiresAt.After(p.CreatedAt) || n.ExpiresAt.UTC().Year() > 9999 {
			return share, "", fault.New(fault.Invalid, "invalid_parameter", "expires_at", "The link would expire before anybody can read it, or after all times. Name a time to come, or leave it out.")
		}
	}
	secret := make([]byte, shareSecretBytes)
	rand.Read(secret)
	hash := sha256.Sum256(secret)
	p.SecretHash = hash[:]
	var row db.Share
	err = s.store().inTurn(ctx, conversationID, func(s *Store) error {
		c, err := s.lock(ctx, conversationID)
		if err != nil {
			return err
		}
		if p.HeadID = toUUID(headID); headID == uuid.Nil {
			if p.HeadID = c.HeadID; !c.HeadID.Valid {
				return errNoActiveHead
			}
		}
		if _, err := s.Message(ctx, conversationID, p.HeadID.Bytes); err != nil {
			return err
		}
		switch n, err := s.q.CountShares(ctx, p.ConversationID); {
		case err != nil:
			return err
		case n >= MaxShares:
			return fault.New(fault.Full, "too_many_shares", "", "The conversation has %d links, which is the most. Revoke one first.", n)
		}
		row, err = s.q.InsertShare(ctx, p)
		if isNoRows(err) {
			return conflict("id", "The id is taken by another link.")
		}
		if err != nil {
			return err
		}
		return s.Admin().Audit(ctx, AuditEvent{Action: ActionShareCreated, ConversationID: conversationID, SubjectID: row.ID.Bytes})
	})
	if err != nil {
		return share, "", err
	}
	raw := append(append(append([]byte(nil), row.ConversationID.Bytes[:]...), row.ID.Bytes[:]...), secret...)
	return fromShare(row), shareTokenPrefix + base64.RawURLEncoding.EncodeToString(raw), nil
}

// All lists the links of a conversation, the newest first, expired ones too.
func (s *Shares) All(ctx context.Context, conversationID uuid.UUID) (_ []Share, err error) {
	defer db.Wrap(&err, "tree.Shares.All(%s)", conversationID)
	rows, err := s.q.ListShares(ctx, db.ListSharesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	if err == nil && len(rows) == 0 {
		_, err = s.store().Conversation(ctx, conversationID)
	}
	if err != nil {
		return nil, err
	}
	shares := make([]Share, len(rows))
	for i, row := range rows {
		shares[i] = fromShare(row)
	}
	return shares, nil
}

// Revoke ends a link: what it showed is not shown from the next request on.
func (s *Shares) Revoke(ctx context.Context, conversationID, id uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.Shares.Revoke(%s, %s)", conversationID, id)
	return s.store().inTx(ctx, func(s *Store) error {
		n, err := s.q.DeleteShare(ctx, db.DeleteShareParams{ConversationID: toUUID(conversationID), ID: toUUID(id), TenantID: s.tenant, Reader: s.reader})
		if err != nil {
			return err
		}
		if n > 0 {
			return s.Admin().Audit(ctx, AuditEvent{Action: ActionShareRevoked, ConversationID: conversationID, SubjectID: id})
		}
		if _, err := s.Conversation(ctx, conversationID); err != nil {
			return err
		}
		return errShareNotFound
	})
}

func fromShare(row db.Share) Share {
	share := Share{ID: row.ID.Bytes, ConversationID: row.ConversationID.Bytes, HeadID: row.HeadID.Bytes, Summaries: row.Summaries, CreatedAt: row.CreatedAt.UTC()}
	if row.ExpiresAt.Valid {
		share.ExpiresAt = row.ExpiresAt.Time.UTC()
	}
	return share
}

// A token is this prefix and base64url of a conversation's id, a link's id, and a
// secret of 128 bits. The ids lead to the link's row; they open nothing without
// the secret.
const (
	shareTokenPrefix = "cps_"
	shareSecretBytes = 16
)

func readShareToken(token string) (conversationID, id uuid.UUID, secret []byte, ok bool) {
	text, ok := strings.CutPrefix(token, shareTokenPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(raw) != 32+shareSecretBytes {
		return conversationID, id, nil, false
	}
	return uuid.UUID(raw[:16]), uuid.UUID(raw[16:32]), raw[32:], true
}

// Shared is what a link shows, a page of it.
type Shared struct {
	Title     string
	CreatedAt time.Time // of the link
	ExpiresAt time.Time // zero: never
	Summary   *SharedSummary
	Messages  Page[SharedMessage]
}

// A SharedSummary is the summary that applies at the branch's head.
type SharedSummary struct {
	Body     json.RawMessage
	Messages int  // of the branch, from its beginning, that it stands for
	Imported bool // some of its text came with an import
}

// A SharedMessage is a message without what leads to others: ids, metadata,
// counts and reasoning.
type SharedMessage struct {
	Body      json.RawMessage
	CreatedAt time.Time
}

// A Link is a share that somebody opened.
type Link struct {
	store  *Store // of the share's tenant
	share  Share
	title  string
	secret []byte
}

// ID returns the id of the share.
func (l *Link) ID() uuid.UUID { return l.share.ID }

// Open finds what a token opens, by one row. Any token that opens nothing
// gives the same fault.NotFound.
func (s *Shares) Open(ctx context.Context, token string) (_ *Link, err error) {
	defer db.Wrap(&err, "tree.Shares.Open")
	conversationID, id, secret, ok := readShareToken(token)
	if !ok {
		return nil, errSharedNotFound
	}
	row, err := s.q.GetShare(ctx, db.GetShareParams{ConversationID: toUUID(conversationID), ID: toUUID(id)})
	if err != nil {
		return nil, orMissing(err, errSharedNotFound)
	}
	share := fromShare(row.Share)
	hash := sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(hash[:], row.Share.SecretHash) != 1 || !share.ExpiresAt.IsZero() && !share.ExpiresAt.After(time.Now()) {
		return nil, errSharedNotFound
	}
	return &Link{s.store().ForTenant(row.TenantID), share, row.Title, secret}, nil
}

// Read reads what the link shows: the messages of its branch, the newest page
// first, as Transcript pages them, without those of the system and the
// developer. Only the first page has the summary.
func (l *Link) Read(ctx context.Context, p Paging) (shared Shared, err error) {
	defer db.Wrap(&err, "tree.Link.Read")
	s, share := l.store, l.share
	if p.Cursor, err = openShareCursor(p.Cursor, l.secret); err != nil {
		return shared, err
	}
	page, err := s.Transcript(ctx, share.ConversationID, share.HeadID, p)
	if err != nil {
		return shared, orGone(err)
	}
	shared = Shared{Title: l.title, CreatedAt: share.CreatedAt, ExpiresAt: share.ExpiresAt}
	shared.Messages.Next = encryptShareCursor(page.Next, l.secret)
	for _, m := range page.Data {
		if m.Role == RoleSystem || m.Role == RoleDeveloper {
			continue
		}
		shared.Messages.Data = append(shared.Messages.Data, SharedMessage{sharedBody(m.Body), m.CreatedAt})
	}
	if share.Summaries && p.Cursor == "" {
		shared.Summary, err = s.sharedSummary(ctx, share)
	}
	return shared, orGone(err)
}

// orGone is what a reader hears of a branch that is pruned meanwhile.
func orGone(err error) error {
	if errors.Is(err, fault.NotFound) {
		return errSharedNotFound
	}
	return err
}

func (s *Store) sharedSummary(ctx context.Context, share Share) (*SharedSummary, error) {
	id, err := s.Summaries().Applicable(ctx, share.ConversationID, share.HeadID)
	if err != nil || id == uuid.Nil {
		return nil, err
	}
	summary, err := s.Summaries().One(ctx, share.ConversationID, id)
	if err != nil {
		return nil, err
	}
	last, err := s.Message(ctx, share.ConversationID, summary.Range.LastSummarizedID)
	if err != nil {
		return nil, err
	}
	return &SharedSummary{sharedBody(summary.Body), last.Depth + 1, summary.Range.Origin != nil}, nil
}

// sharedBody keeps the members of a message that people read. An import may have
// brought others, which say who knows what.
func sharedBody(body json.RawMessage) json.RawMessage {
	var kept []chat.Member
	for _, m := range chat.Members(body) {
		switch m.Name {
		case "role", "content", "refusal", "tool_calls", "tool_call_id", "name":
			kept = append(kept, m)
		}
	}
	return chat.AppendObject(nil, kept)
}

// A cursor names a message. It is encrypted, so that a reader of a link neither
// learns its id nor names a message of another branch.
func encryptShareCursor(cursor string, secret []byte) string {
	if cursor == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(shareCipher(secret).Seal(nil, nil, []byte(cursor), nil))
}

func openShareCursor(encrypted string, secret []byte) (string, error) {
	if encrypted == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(encrypted)
	if err != nil {
		return "", errCursor
	}
	cursor, err := shareCipher(secret).Open(nil, nil, raw, nil)
	if err != nil {
		return "", errCursor
	}
	return string(cursor), nil
}

func shareCipher(secret []byte) cipher.AEAD {
	key := sha256.Sum256(append([]byte("coppice share cursor"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // which a key of 32 bytes doesn't cause
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // nor a block of AES
	}
	return aead
}
