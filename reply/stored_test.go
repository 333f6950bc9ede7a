package reply

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
)

// Stored is called once for an answer, when it is committed, and before anybody is
// told of its end: a server notes then how far the database's log is, and reads of
// whoever saw the end wait for that.
func TestStoredIsCalledBeforeTheEnd(t *testing.T) {
	t.Parallel()
	var f *fixture
	called, goOn := make(chan int, 2), make(chan struct{})
	f = serve(t, func(c *Config) {
		c.Stored = func(_ context.Context, tenantID string, conversationID uuid.UUID) {
			conversation, err := f.store.ForTenant(tenantID).Conversation(context.Background(), conversationID)
			if err != nil {
				t.Error(err)
			}
			called <- conversation.MessageCount()
			<-goOn
		}
	}, llm.Offline(0))
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := r.Wait(patient(t)); err != nil {
			t.Error(err)
		}
	}()
	select {
	case n := <-called:
		if n != 2 {
			t.Errorf("it was called when %d messages were stored", n)
		}
	case <-ended:
		t.Error("the end is told before Stored was called")
	case <-time.After(time.Minute):
		t.Error("Stored is not called")
	}
	select {
	case <-ended:
		t.Error("the end is told while Stored runs")
	default:
	}
	close(goOn)
	<-ended
	if len(called) > 0 {
		t.Error("Stored is called twice")
	}
}

// A database that is away is told as that, also where the time to store an answer
// ends in the middle of a try.
func TestTriesThatAreCutOffTellTheCause(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, llm.Offline(0))
	ctx, cancel := context.WithCancel(t.Context())
	away := fault.New(fault.Unavailable, "database_unavailable", "", "The database is away.")
	tries := 0
	err := f.untilStored(ctx, &Reply{}, func() error {
		if tries++; tries == 1 {
			return away
		}
		cancel()
		return ctx.Err()
	})
	if tries != 2 || !errors.Is(err, fault.Unavailable) {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
