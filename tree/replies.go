package tree

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Reply is an answer that is being written, or that ended lately. Its text is in
// its log: see Replies.Log. It isn't a node: no read shows it, and it is deleted with
// its conversation, or with the message that is answered.
type Reply struct {
	TenantID       string
	ConversationID uuid.UUID
	MessageID      uuid.UUID // that the answer has, or will have
	ParentID       uuid.UUID // message that is answered
	MoveHeadFrom   uuid.UUID // active head that the answer takes the place of; uuid.Nil where it becomes the active head only if there is none
	ServerID       string    // server that runs the reply
	Model          string
	State          ReplyState      // set by the Store
	Metadata       json.RawMessage // of the answer: what the request adds and, of a reply that ended with nothing to store, how
	AliveAt        time.Time       // last sign of life, or when it ended; set by the Store
	EndEvent       int             // id of the event that tells the end; 0 while it runs, and where the log may lack events; set by the Store
}

// A ReplyState says how far a reply is.
type ReplyState string

const (
	StateRunning  ReplyState = "running"
	StateStopping ReplyState = "stopping" // a server that doesn't run it asked for its end
	StateStored   ReplyState = "stored"   // as a message
	StateEnded    ReplyState = "ended"    // with nothing to store
	StateDeleted  ReplyState = "deleted"  // its answer is there for other branches alone
)

// ReplyEvents are events of a reply that were saved together.
type ReplyEvents struct {
	Sequence int             // id of the last event until now; ids grow from 1
	Payload  json.RawMessage // in the form of package reply; nil for no new events
}

// ErrReplyLost says that a reply is another server's, is over, or was deleted, or
// that its id is taken. What a server that stalled brings later must not contradict
// what was told meanwhile.
var ErrReplyLost = errors.New("the reply is another server's, or is over")

var errNoReply = fault.New(fault.NotFound, "reply_not_found", "", "Nothing is known of a reply of this id.")

// Begin stores that a server runs a reply, before the model is called. It
// returns an ErrReplyLost where the answer's id is a message's, or a reply of that
// id runs or ended lately. again says that an earlier reply of the id may have ended
// with nothing to store: this one is another try. Where the message that is answered
// isn't there, it is a fault.NotFound.
func (s *Replies) Begin(ctx context.Context, r Reply, again bool) (err error) {
	defer db.Wrap(&err, "tree.Replies.Begin(%s, %s)", r.ConversationID, r.MessageID)
	err = s.store().inTurn(ctx, r.ConversationID, func(s *Store) error {
		if _, err := s.lock(ctx, r.ConversationID); err != nil {
			return err
		}
		return (&beginning{r, again}).run(ctx, s, r.ParentID)
	})
	if errors.Is(err, ErrReplyLost) {
		if _, missing := s.store().checkParent(ctx, r.ConversationID, r.ParentID); missing != nil {
			return missing
		}
	}
	return err
}

// BeginsReply makes Append or AppendChain also do what Replies.Begin does, in one
// transaction with the messages. The last of them is what the reply answers. Messages
// that are stored already are no obstacle.
func BeginsReply(r Reply, again bool) AppendOption {
	return func(o *appendOptions) { o.begins = &beginning{r, again} }
}

// A beginning is a reply that begins with an append.
type beginning struct {
	Reply
	again bool
}

func (b *beginning) statement(ctx context.Context, s *Store, parentID pgtype.UUID) db.Statement {
	return db.StatementOf(func(q *db.Queries) { _, _ = q.BeginReply(ctx, s.beginReplyParams(b.Reply, parentID)) })
}

// run begins the reply in the transaction of s. No reply is none to begin.
func (b *beginning) run(ctx context.Context, s *Store, parentID uuid.UUID) error {
	if b == nil {
		return nil
	}
	if b.again {
		if err := s.forgetEvents(ctx, b.ConversationID, b.MessageID); err != nil {
			return err
		}
	}
	return orLost(s.q.BeginReply(ctx, s.beginReplyParams(b.Reply, toUUID(parentID))))
}

func (s *Store) forgetEvents(ctx context.Context, conversationID, messageID uuid.UUID) error {
	return s.q.ForgetReplyEvents(ctx, db.ForgetReplyEventsParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID)})
}

func (s *Store) beginReplyParams(r Reply, parentID pgtype.UUID) db.BeginReplyParams {
	metadata := r.Metadata
	if metadata == nil {
		metadata = none
	}
	return db.BeginReplyParams{
		ConversationID: toUUID(r.ConversationID), MessageID: toUUID(r.MessageID), ParentID: parentID, MoveHeadFrom: toUUID(r.MoveHeadFrom),
		ServerID: r.ServerID, Model: r.Model, Metadata: metadata, AliveAt: now(), TenantID: s.tenant, Reader: s.reader,
	}
}

// Save adds events to the log of a reply, and is a sign of life. first notes
// that the reply runs. stopping reports whether another server asked for its end. If
// the server that r names doesn't run the reply any more, Save changes nothing
// and returns an ErrReplyLost.
func (s *Replies) Save(ctx context.Context, r Reply, events ReplyEvents, first bool) (stopping bool, err error) {
	defer db.Wrap(&err, "tree.Replies.Save(%s, %s)", r.ConversationID, r.MessageID)
	save := func(s *Store) error {
		state, err := s.q.SaveReply(ctx, db.SaveReplyParams{ConversationID: toUUID(r.ConversationID), MessageID: toUUID(r.MessageID), ServerID: r.ServerID, AliveAt: now()})
		if isNoRows(err) {
			return ErrReplyLost
		}
		if stopping = ReplyState(state) == StateStopping; err != nil {
			return err
		}
		return s.addEvents(ctx, r.ConversationID, r.MessageID, events)
	}
	switch {
	case first:
		err = s.store().inTurn(ctx, r.ConversationID, func(s *Store) error {
			if _, err := s.lock(ctx, r.ConversationID); err != nil {
				return lostIfMissing(err)
			}
			if err := save(s); err != nil {
				return err
			}
			return s.note(ctx, Change{ConversationID: r.ConversationID, Kind: ReplyRunning, MessageID: r.MessageID, ParentID: r.ParentID})
		})
	case events.Payload == nil:
		err = save(s.store())
	default:
		err = s.store().inTx(ctx, save)
	}
	return stopping, err
}

func (s *Store) addEvents(ctx context.Context, conversationID, messageID uuid.UUID, events ReplyEvents) error {
	if events.Payload == nil {
		return nil
	}
	return s.q.AddReplyEvents(ctx, db.AddReplyEventsParams{
		ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), Sequence: int32(events.Sequence), Payload: events.Payload,
	})
}

// EndsReply makes Append end the reply whose answer the message is, in one
// transaction with the message: events are the last of its log, and the end is the
// next one. With a Sequence of 0 the log may lack some. If the server doesn't run the
// reply any more, Append stores nothing and returns an ErrReplyLost.
func EndsReply(serverID string, events ReplyEvents) AppendOption {
	return func(o *appendOptions) { o.ends = &saving{serverID, events} }
}

// A saving is what a server brings of its reply.
type saving struct {
	serverID string
	events   ReplyEvents
}

// run ends the reply in the transaction of s, with its answer. No saving ends none.
func (e *saving) run(ctx context.Context, s *Store, conversationID, messageID uuid.UUID) error {
	if e == nil {
		return nil
	}
	return s.endReply(ctx, conversationID, messageID, StateStored, nil, *e)
}

func (s *Store) endReply(ctx context.Context, conversationID, messageID uuid.UUID, state ReplyState, metadata json.RawMessage, by saving) error {
	err := orLost(s.q.EndReply(ctx, db.EndReplyParams{
		ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), ServerID: by.serverID, State: string(state), Metadata: metadata, AliveAt: now(),
		EndEvent: pgtype.Int4{Int32: int32(by.events.Sequence) + 1, Valid: by.events.Sequence > 0},
	}))
	if err != nil {
		return err
	}
	return s.addEvents(ctx, conversationID, messageID, by.events)
}

// End ends a reply of which nothing is stored. metadata tell how it ended,
// events are as with EndsReply. If the conversation has no active head and no other
// reply under way, headID becomes the active head, unless it is uuid.Nil. End
// returns an ErrReplyLost like Save.
func (s *Replies) End(ctx context.Context, r Reply, headID uuid.UUID, metadata json.RawMessage, events ReplyEvents) (err error) {
	defer db.Wrap(&err, "tree.Replies.End(%s, %s)", r.ConversationID, r.MessageID)
	return s.store().inTurn(ctx, r.ConversationID, func(s *Store) error {
		c, err := s.lock(ctx, r.ConversationID)
		if err != nil {
			return lostIfMissing(err)
		}
		if err := s.endReply(ctx, r.ConversationID, r.MessageID, StateEnded, metadata, saving{r.ServerID, events}); err != nil {
			return err
		}
		if headID != uuid.Nil {
			if err := s.giveHead(ctx, c, headID); err != nil {
				return err
			}
		}
		return s.note(ctx, Change{ConversationID: r.ConversationID, Kind: ReplyEnded, MessageID: r.MessageID})
	})
}

// giveHead makes a message the active head of a conversation that has none, after
// the last of its replies has ended.
func (s *Store) giveHead(ctx context.Context, c db.Conversation, headID uuid.UUID) error {
	if c.HeadID.Valid {
		return nil
	}
	running, err := s.q.ListRunningReplies(ctx, db.ListRunningRepliesParams{ConversationID: c.ID, TenantID: s.tenant, Reader: s.reader})
	if len(running) > 0 || err != nil {
		return err
	}
	if err := s.q.MoveHead(ctx, db.MoveHeadParams{ID: c.ID, HeadID: toUUID(headID), UpdatedAt: now()}); err != nil {
		return err
	}
	return s.note(ctx, Change{ConversationID: uuid.UUID(c.ID.Bytes), Kind: HeadMoved, MessageID: headID})
}

// All lists the replies that run, of all tenants: tenants, ids, servers and
// times.
func (s *Replies) All(ctx context.Context) (_ []Reply, err error) {
	defer db.Wrap(&err, "tree.Replies.All")
	rows, err := s.q.ListReplies(ctx)
	list := make([]Reply, len(rows))
	for i, r := range rows {
		list[i] = Reply{
			TenantID: r.TenantID, ConversationID: uuid.UUID(r.ConversationID.Bytes), MessageID: uuid.UUID(r.MessageID.Bytes),
			ServerID: r.ServerID, AliveAt: r.AliveAt.UTC(),
		}
	}
	return list, err
}

// Take gives a server a reply that All listed and whose server gives no sign
// of life. It returns an ErrReplyLost if the reply is over, if its server gave one
// since, or if another server took it.
func (s *Replies) Take(ctx context.Context, listed Reply, serverID string) (_ Reply, err error) {
	defer db.Wrap(&err, "tree.Replies.Take(%s, %s)", listed.ConversationID, listed.MessageID)
	row, err := s.q.TakeReply(ctx, db.TakeReplyParams{
		ConversationID: toUUID(listed.ConversationID), MessageID: toUUID(listed.MessageID), OldServerID: listed.ServerID, OldAliveAt: listed.AliveAt,
		ServerID: serverID, AliveAt: now(),
	})
	if isNoRows(err) {
		return Reply{}, ErrReplyLost
	}
	return fromReply(row, listed.TenantID), err
}

// One reads a reply of this tenant's. One that ended is known for a while. Any
// other id is a fault.NotFound.
func (s *Replies) One(ctx context.Context, conversationID, messageID uuid.UUID) (_ Reply, err error) {
	defer db.Wrap(&err, "tree.Replies.One(%s, %s)", conversationID, messageID)
	row, err := s.q.GetReply(ctx, db.GetReplyParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), TenantID: s.tenant, Reader: s.reader})
	return fromReply(row, s.tenant), orMissing(err, errNoReply)
}

// Log reads a reply, and the events that were saved of it in saves whose last event has
// an id after the one given. So the events of a reply that is over are all there.
func (s *Replies) Log(ctx context.Context, conversationID, messageID uuid.UUID, after int) (r Reply, events []ReplyEvents, err error) {
	defer db.Wrap(&err, "tree.Replies.Log(%s, %s)", conversationID, messageID)
	rows, err := s.q.GetReplyLog(ctx, db.GetReplyLogParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), After: int32(after), TenantID: s.tenant, Reader: s.reader})
	if err == nil && len(rows) == 0 {
		err = errNoReply
	}
	for _, row := range rows {
		r = fromReply(row.Reply, s.tenant)
		if row.Sequence.Valid {
			events = append(events, ReplyEvents{int(row.Sequence.Int32), row.Payload})
		}
	}
	return r, events, err
}

// A RunningReply is an answer that is being written.
type RunningReply struct {
	MessageID uuid.UUID       `json:"message_id"` // that the answer will have
	ParentID  uuid.UUID       `json:"parent_id"`  // message that is answered
	Model     string          `json:"model"`
	Metadata  json.RawMessage `json:"-"` // that the request adds to the answer's
}

// Of returns the replies that run in a conversation on any server.
func (s *Replies) Of(ctx context.Context, conversationID uuid.UUID) (_ []RunningReply, err error) {
	defer db.Wrap(&err, "tree.Replies.Of(%s)", conversationID)
	rows, err := s.q.ListRunningReplies(ctx, db.ListRunningRepliesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	out := make([]RunningReply, len(rows))
	for i, row := range rows {
		out[i] = RunningReply{MessageID: uuid.UUID(row.MessageID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), Model: row.Model, Metadata: row.Metadata}
	}
	if err == nil && len(rows) == 0 {
		_, err = s.store().Conversation(ctx, conversationID)
	}
	return out, err
}

// Stop asks the server that runs a reply to end it, and reports whether
// the reply runs.
func (s *Replies) Stop(ctx context.Context, conversationID, messageID uuid.UUID) (_ bool, err error) {
	defer db.Wrap(&err, "tree.Replies.Stop(%s, %s)", conversationID, messageID)
	n, err := s.q.StopReply(ctx, db.StopReplyParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID)})
	return n > 0, err
}

// Forget deletes the replies of every tenant that ended: those whose answer
// was stored before a time, and those that ended with nothing to store before another.
func (s *Replies) Forget(ctx context.Context, stored, ended time.Time) (err error) {
	defer db.Wrap(&err, "tree.Replies.Forget")
	return s.q.ForgetReplies(ctx, db.ForgetRepliesParams{StoredBefore: stored, EndedBefore: ended})
}

func orLost(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrReplyLost
	}
	return err
}

// lostIfMissing is an ErrReplyLost in place of an error that says that the
// conversation isn't there: its replies went with it.
func lostIfMissing(err error) error {
	if errors.Is(err, fault.NotFound) {
		return ErrReplyLost
	}
	return err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// fromReply is the one converter of replies.
func fromReply(r db.Reply, tenant string) Reply {
	return Reply{
		TenantID: tenant, ConversationID: uuid.UUID(r.ConversationID.Bytes), MessageID: uuid.UUID(r.MessageID.Bytes), ParentID: uuid.UUID(r.ParentID.Bytes),
		MoveHeadFrom: uuid.UUID(r.MoveHeadFrom.Bytes), ServerID: r.ServerID, Model: r.Model, State: ReplyState(r.State), Metadata: r.Metadata, AliveAt: r.AliveAt.UTC(), EndEvent: int(r.EndEvent.Int32),
	}
}
