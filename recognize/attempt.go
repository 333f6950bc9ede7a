package recognize

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// An Attempt says what request a request repeats. With a Key, the id of the answer
// derives from it. Without one, a request that its client sent before gets the newest
// answer to what it says.
type Attempt struct {
	Key     string // names the request and its bytes; "" for none
	Retried bool   // the client says that it sent the request before
	Stops   bool   // the reply stops when its last reader goes
}

// AttemptOf reads an attempt from the headers Idempotency-Key and, by which SDKs say
// how often they sent a request before, X-Stainless-Retry-Count. The same key with
// another path or body is another request.
func AttemptOf(h http.Header, path string, body []byte) (a Attempt) {
	if key := h.Get("Idempotency-Key"); key != "" {
		a.Key = fmt.Sprintf("%s\x00%s\x00%x", key, path, sha256.Sum256(body))
	}
	n, _ := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	a.Retried = n > 0
	return a
}

// Start begins a reply, or finds the one that the attempt repeats. All that the
// request says must be in the tree before an attempt without a key is known for a
// repetition; Record finds it.
func (s Service) Start(ctx context.Context, ask reply.Request, a Attempt) (_ *reply.Reply, err error) {
	defer fault.Wrap(&err, "recognize.Start(%s)", ask.ConversationID)
	if a.Key != "" {
		id, err := s.Store.DeriveID(ctx, "attempt", a.Key)
		if err != nil {
			return nil, err
		}
		id = uuid.NewSHA1(id, []byte("answer")) // not of broughtVersion
		rep, again, err := s.named(ctx, ask.ConversationID, id, a.Stops)
		if rep != nil || err != nil {
			return rep, err
		}
		if a.Retried = a.Retried || again; !again {
			ask.ID = id
		}
	}
	if a.Retried && len(ask.Messages) == 0 && ask.HeadID != uuid.Nil {
		if rep, err := s.answerTo(ctx, ask.ConversationID, ask.HeadID, a.Stops); rep != nil || err != nil {
			return rep, err
		}
	}
	rep, _, err := s.Replies.Start(ctx, ask)
	return rep, err
}

// named finds the reply of an id. again says that it failed or was stopped: then another
// one takes its place, under an id of its own.
func (s Service) named(ctx context.Context, conversationID, id uuid.UUID, stops bool) (_ *reply.Reply, again bool, err error) {
	m, err := s.Store.Message(ctx, conversationID, id)
	switch {
	case err == nil && reply.EndOf(m).Status != reply.StatusCompleted:
		return nil, true, nil
	case err != nil && !errors.Is(err, fault.NotFound):
		return nil, false, err
	case err != nil:
		running, err := s.Replies.Running(ctx, conversationID)
		if err != nil {
			return nil, false, err
		}
		there := false
		for _, r := range running {
			there = there || r.MessageID == id
		}
		if !there {
			return nil, false, nil
		}
	}
	rep, stopped, err := s.join(ctx, conversationID, id, stops)
	if stopped {
		return s.named(ctx, conversationID, id, stops)
	}
	return rep, false, err
}

// join finds a reply for another request that reads it until ctx ends; nil for none. One
// that may be about to stop is waited for, and is none if it does: its client is told of
// an answer of its own, and not of half of one.
func (s Service) join(ctx context.Context, conversationID, id uuid.UUID, stops bool) (_ *reply.Reply, stopped bool, err error) {
	rep, err := s.Replies.Find(ctx, conversationID, id)
	switch {
	case errors.Is(err, fault.NotFound): // it ended meanwhile, with nothing to store
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	if rep.Attend(ctx, false); rep.Stopping(stops) {
		if end, err := rep.Wait(ctx); err != nil || end.Status != reply.StatusCompleted { // what is stored already may end, too
			return nil, true, err
		}
	}
	return rep, false, nil
}

// refusals are codes of errors by which a model refuses a request for good.
var refusals = []string{"model_refused", "model_not_authorized", "prompt_too_long"}

// TakeBack takes back what a request brought that its model refused for good, as cause
// says, unless something else goes on from it. Otherwise each refused request of a client
// leaves a branch. The active head is the one before again. made says that the
// conversation was made for such requests, and goes with its last message.
func (s Service) TakeBack(ctx context.Context, rep *reply.Reply, cause error, made bool) {
	brought, head := rep.Brought()
	if len(brought) == 0 || !slices.Contains(refusals, fault.Of(cause).Code) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	running, err := s.Replies.Running(ctx, rep.ConversationID())
	for _, id := range slices.Backward(brought) {
		if err != nil || slices.ContainsFunc(running, func(r tree.RunningReply) bool { return r.ParentID == id }) {
			return // what isn't taken back is no fault of the client's
		}
		_, err = s.Store.Histories().PruneLeaf(ctx, rep.ConversationID(), id, head)
	}
	if made && err == nil {
		_, _ = s.Store.Histories().DeleteEmpty(ctx, rep.ConversationID())
	}
}
