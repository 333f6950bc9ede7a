package tree_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// statements keeps what is sent to the database.
type statements struct{ sql []string }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.sql = append(s.sql, q.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.sql = append(s.sql, "batch")
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (s *statements) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, c pgx.TraceCopyFromStartData) context.Context {
	s.sql = append(s.sql, "copy into "+c.TableName.Sanitize())
	return ctx
}
func (s *statements) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// counted opens a database of the test's own, and keeps what is sent to it.
func counted(t *testing.T) (*pgxpool.Pool, *statements) {
	t.Helper()
	var sent statements
	pool := must(db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 1, Tracer: &sent}))(t)
	t.Cleanup(pool.Close)
	return pool, &sent
}

func chainOf(length int) []tree.NewMessage {
	ms := make([]tree.NewMessage, length)
	for i := range ms {
		ms[i] = user(fmt.Sprint(i))
		ms[i].ID = uuid.New()
	}
	return ms
}

// Messages with attachments, and results, take as many round trips in hundreds as in twos.
func TestAttachmentsTakeAFixedNumberOfRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	files := make([]tree.Attachment, 7)
	for i := range files {
		files[i] = upload(t, s, "notes.txt", fmt.Appendf(nil, "note %d", i))
	}
	chain := func(length int) []tree.NewMessage {
		ms := chainOf(length)
		for i := range ms {
			ms[i].Message = chat.Read(naming(fmt.Sprint(i), files[i%len(files)], files[(i+1)%len(files)]))
		}
		return ms
	}
	nodes := func(length int) (all []tree.BundleNode) {
		var parent uuid.UUID
		for _, m := range chain(length) {
			all = append(all, tree.BundleNode{ID: m.ID, ParentID: parent, Body: m.Message.Raw})
			parent = m.ID
		}
		return all
	}
	for what, f := range map[string]func(length int) func() error{
		"a chain": func(length int) func() error {
			c, ms := newConversation(t, s).ID, chain(length)
			return func() error { return second(s.AppendChain(t.Context(), c, uuid.Nil, ms)) }
		},
		"a chain again": func(length int) func() error {
			c, ms := newConversation(t, s).ID, chain(length)
			again := func() error { return second(s.AppendChain(t.Context(), c, uuid.Nil, ms)) }
			noError(t, again())
			return again
		},
		"a chain with another end": func(length int) func() error {
			c, ms := newConversation(t, s).ID, chain(length)
			must(s.AppendChain(t.Context(), c, uuid.Nil, ms))(t)
			ms[length-1].Message = user("another").Message
			return func() error {
				if err := second(s.AppendChain(t.Context(), c, uuid.Nil, ms)); !errors.Is(err, fault.Conflict) {
					return fmt.Errorf("it is taken: %w", err)
				}
				return nil
			}
		},
		"a check": func(length int) func() error {
			ms := chain(length)
			return func() error { return second(s.Checked(t.Context(), ms)) }
		},
		"an import": func(length int) func() error {
			bundle := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: nodes(length)}
			return func() error { return second(s.Import(t.Context(), bundle)) }
		},
		"an import of tool results": func(length int) func() error {
			c, caller := newConversation(t, s).ID, &chat.Message{Role: chat.Assistant}
			for i := range length {
				caller.Calls = append(caller.Calls, chat.Call{ID: fmt.Sprint(i), Name: "f", Arguments: "{}"})
			}
			bundle := tree.Bundle{Conversation: tree.NewConversation{ID: c}}
			parent := mustAppend(t, s, c, uuid.Nil, tree.NewMessage{Message: chat.Read(caller.Encode())}).ID
			for i := range length {
				n := tree.BundleNode{ID: uuid.New(), ParentID: parent, Body: fmt.Appendf(nil, `{"role":"tool","tool_call_id":"%d","content":"r"}`, i)}
				bundle.Nodes, parent = append(bundle.Nodes, n), n.ID
			}
			return func() error { return second(s.Import(t.Context(), bundle)) }
		},
	} {
		var trips []int
		for _, length := range []int{1, 2, 90} { // the first may ask once for all; a longer import lifts the bound of its statements
			run := f(length)
			sent.sql = nil
			err := run()
			check.Need(t, err == nil, "%s of %d: %v", what, length, err)
			trips = append(trips, len(sent.sql))
		}
		check.That(t, trips[1] == trips[2], "%s of 2 takes %d round trips, and of 90 %d", what, trips[1], trips[2])
	}
}

// A long turn is deleted with its answer in few round trips. Where another branch goes on, it stays.
func TestDeletedTurnTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	var trips []int
	for _, brought := range []int{1, 600} {
		c := newConversation(t, s).ID
		top := mustAppend(t, s, c, uuid.Nil, raw(`{"role":"system","content":"stays"}`))
		mustAppend(t, s, c, top.ID, user("another branch"))
		chain := must(s.AppendChain(t.Context(), c, top.ID, chainOf(brought+1)))(t).Messages
		sent.sql = nil
		must(s.Histories().Retract(t.Context(), c, chain[brought].ID, func(tree.Message) int { return brought + 1 }))(t)
		trips = append(trips, len(sent.sql))
		check.Equal(t, "messages that are left, the two of the other branch", count(t, s, c), 2)
	}
	more := trips[1] - trips[0]
	check.That(t, more <= 10, "it takes %d round trips, and of 600 messages %d more", trips[0], more)
}

// An append takes one round trip, whatever it is stored under.
func TestAppendTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	head := mustAppend(t, s, c.ID, uuid.Nil, user("root")).ID
	for what, opts := range map[string][]tree.AppendOption{
		"parent": nil, "active head": {tree.AtHead()}, "bound head": {tree.AtHead(), tree.IfHead(head)}, "auxiliary": {tree.Auxiliary(), tree.KeepHead()},
	} {
		sent.sql = nil
		m, err := s.Append(t.Context(), c.ID, head, user(what), opts...)
		batches := len(sent.sql)
		check.That(t, err == nil && m.ParentID == head && (dbtest.Shards(t) != 1 || batches <= 1),
			"%s: under %s, %v, in %d round trips: %q", what, m.ParentID, err, batches, sent.sql)
		must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: head}))(t)
	}
}
