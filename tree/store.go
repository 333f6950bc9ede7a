package tree

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/citus"
	"github.com/coppice-chat/coppice/tokens"
)

// DefaultTenant owns everything in an installation without tenants.
const DefaultTenant = "default"

// A Store reads and writes one tenant's conversations. Its state is a handle, the
// installation's secret, whether the database is distributed and who writes to which
// conversation. Several goroutines may use it if they may use its handle: a pool, but not a connection
// or a transaction.
type Store struct {
	h       db.Handle
	q       *db.Queries
	tenant  string
	actor   access.Principal // who asks
	reader  string           // whose private conversations it sees, besides all that aren't private; access.Everybody sees all
	counter tokens.Counter
	limits  Limits
	secret  *secret
	engine  *engine
	pool    *db.TenantPool                // that h is the tenant's part of; nil for none
	writers *db.KeyedSemaphore[uuid.UUID] // of those who write to a conversation

	settings func(json.RawMessage) error // nil takes any

	counted     func(tenantID string, messages, bytes int)      // what is stored; nil for none
	changed     func(tenantID string, conversationID uuid.UUID) // after a commit; nil for none
	uncommitted *[]uuid.UUID                                    // what the store's own transaction changed; nil outside one
}

// An Option sets up a Store.
type Option func(*Store)

// WithTokenCounter counts with another tokenizer than o200k. Counts are stored
// when a message is appended, so one database is best counted by one counter.
func WithTokenCounter(c tokens.Counter) Option {
	return func(s *Store) { s.counter = c }
}

// New returns a Store of DefaultTenant's conversations over a pool, a connection
// or a transaction. Over a transaction the caller commits. A method that fails
// has then changed nothing, and the transaction goes on. Over a db.TenantPool each
// tenant has its part of the pool.
func New(h db.Handle, opts ...Option) *Store {
	s := &Store{h: h, q: db.New(h), tenant: DefaultTenant, reader: access.Everybody, writers: db.NewKeyedSemaphore[uuid.UUID](1), counter: tokens.O200k(), secret: new(secret), engine: new(engine)}
	for _, o := range opts {
		o(s)
	}
	if pool, ok := h.(*db.TenantPool); ok {
		s.pool = pool
		return s.ForTenant(s.tenant)
	}
	return s
}

// ForTenant returns the same Store for another tenant's conversations.
func (s *Store) ForTenant(tenantID string) *Store {
	c := *s
	c.tenant, c.actor, c.reader = tenantID, access.Principal{Tenant: tenantID}, access.Everybody
	if c.pool != nil {
		c.h = c.pool.Of(tenantID)
		c.q = db.New(c.h)
	}
	return &c
}

// CheckingSettings returns the same Store with a check of the settings that a
// conversation is made with or given. It stores no settings that check refuses.
// The tree itself doesn't know what settings mean.
func (s *Store) CheckingSettings(check func(settings json.RawMessage) error) *Store {
	c := *s
	c.settings = check
	return &c
}

// checkSettings checks settings that were given; nil were not.
func (s *Store) checkSettings(given json.RawMessage) error {
	if s.settings == nil || given == nil {
		return nil
	}
	return s.settings(given)
}

// TenantID returns the tenant whose conversations the Store sees.
func (s *Store) TenantID() string { return s.tenant }

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.h.Exec(ctx, "select 1")
	return err
}

// CheckWrites checks that the database takes writes: see [db.CheckWrites].
func (s *Admin) CheckWrites(ctx context.Context) error { return db.CheckWrites(ctx, s.h) }

// commits tells whether a write that has returned is committed: not in a
// transaction of the caller's.
func (s *Store) commits() bool {
	_, inTx := s.h.(pgx.Tx)
	return !inTx
}

// inTx runs f in a transaction of its own, or in a savepoint of the caller's.
// After the commit it tells what changed.
func (s *Store) inTx(ctx context.Context, f func(*Store) error) error {
	var changed []uuid.UUID
	err := pgx.BeginFunc(ctx, s.h, func(tx pgx.Tx) error {
		inner := s.over(tx)
		inner.uncommitted = &changed
		return f(inner)
	})
	if err == nil {
		for _, id := range changed {
			s.committing(id)
		}
	}
	return err
}

// turn waits in memory until the caller is the one of this program's that may write
// to a conversation. So those who wait hold no connection to the database. In a
// transaction of the caller's, nobody waits here.
func (s *Store) turn(ctx context.Context, conversationID uuid.UUID) (leave func(), err error) {
	if !s.commits() {
		return func() {}, nil
	}
	return s.writers.Acquire(ctx, conversationID)
}

// inTurn is inTx for a transaction that locks a conversation.
func (s *Store) inTurn(ctx context.Context, conversationID uuid.UUID, f func(*Store) error) error {
	leave, err := s.turn(ctx, conversationID)
	if err != nil {
		return err
	}
	defer leave()
	return s.inTx(ctx, f)
}

// over is the same Store over a transaction.
func (s *Store) over(tx pgx.Tx) *Store {
	c := *s
	c.h, c.q, c.pool = tx, db.New(tx), nil
	return &c
}

// allowLongStatements lets the statements of f take long, for work that grows with the
// tree. It runs in a transaction, which may be the caller's: the bound that was
// there holds again after it. Where f fails, the rollback sees to that.
func (s *Store) allowLongStatements(ctx context.Context, f func() error) error {
	was, err := s.q.SetStatementTimeout(ctx, "10min") // a bound all the same
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	_, err = s.q.SetStatementTimeout(ctx, was.Bound)
	return err
}

// lock makes the transaction the conversation's one writer until it ends.
func (s *Store) lock(ctx context.Context, conversationID uuid.UUID) (db.Conversation, error) {
	distributed, err := s.engine.isDistributed(ctx, s.h)
	if err != nil {
		return db.Conversation{}, err
	}
	arg := db.LockConversationParams{ID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader}
	if distributed {
		c, err := citus.Lock(ctx, s.h, arg)
		return c, orMissing(err, errConversationNotFound)
	}
	c, err := s.q.LockConversation(ctx, arg)
	return c, orMissing(err, errConversationNotFound)
}

// now is the time as Postgres stores it, so that what a write returns equals
// what a read gives.
func now() time.Time { return stamp(time.Now()) }

func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func toUUID(id uuid.UUID) pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil}
}

// textOrNull stands null for "".
func textOrNull(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

func toUUIDs(ids []uuid.UUID) []pgtype.UUID {
	out := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		out[i] = toUUID(id)
	}
	return out
}

func fromUUIDs(ids []pgtype.UUID) []uuid.UUID {
	out := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		out[i] = uuid.UUID(id.Bytes)
	}
	return out
}

// fromConversation is the one converter of conversation rows.
func fromConversation(c db.Conversation) Conversation {
	return Conversation{
		ID: uuid.UUID(c.ID.Bytes), TenantID: c.TenantID, Title: c.Title, Metadata: c.Metadata, Settings: c.Settings,
		HeadID: uuid.UUID(c.HeadID.Bytes), OwnerID: c.OwnerID, Visibility: visibility(c.OwnerID, c.Reader), CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(), messages: int(c.MessageCount),
		Order:  Order{Archived: c.Archived, Pinned: c.Pinned, Tags: c.Tags},
		Source: Source{uuid.UUID(c.SourceConversationID.Bytes), uuid.UUID(c.SourceMessageID.Bytes), hex.EncodeToString(c.SourceRequest)},
	}
}

func visibility(owner, reader string) Visibility {
	switch {
	case owner == "":
		return ""
	case reader == "":
		return VisibleToTenant
	}
	return VisibleToOwner
}

// fromMessage is the one converter of message rows.
func fromMessage(n db.Node, siblings int32, annotation []byte) Message {
	return Message{
		ConversationID: uuid.UUID(n.ConversationID.Bytes), ID: uuid.UUID(n.ID.Bytes), ParentID: uuid.UUID(n.ParentID.Bytes),
		Role: Role(n.Role), Body: n.Body, Reasoning: n.Reasoning.String, Metadata: n.Metadata, Pinned: n.Pinned,
		Tokens: int(n.Tokens), PathTokens: n.PathTokens, Depth: int(n.Depth),
		Siblings: Siblings{Index: int(n.SiblingIndex.Int32), Count: int(siblings)}, Graft: fromGraft(n.Origin), CreatedAt: n.CreatedAt.UTC(), Annotation: fromAnnotation(annotation),
	}
}

// fromSummary is the one converter of summary rows.
func fromSummary(n db.Node) Summary {
	return Summary{
		ConversationID: uuid.UUID(n.ConversationID.Bytes), ID: uuid.UUID(n.ID.Bytes), AnchorID: uuid.UUID(n.ParentID.Bytes),
		Range: fromRange(n.LastSummarizedID, n.PriorSummaryID, n.KeptIds, n.Model, n.Origin),
		Body:  n.Body, Metadata: n.Metadata, Tokens: int(n.Tokens), Depth: int(n.Depth), CreatedAt: n.CreatedAt.UTC(),
	}
}

func fromRange(cutoff, prior pgtype.UUID, kept []pgtype.UUID, model pgtype.Text, origin json.RawMessage) SummaryRange {
	return SummaryRange{
		LastSummarizedID: uuid.UUID(cutoff.Bytes), PriorSummaryID: uuid.UUID(prior.Bytes),
		KeptIDs: fromUUIDs(kept), Model: model.String, Origin: fromOrigin(origin),
	}
}
