package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// MaxAnswers is how many answers one request can ask for.
const MaxAnswers = 8

// answers is the member of an answer's metadata that says how many its request asked for.
const answers = "answers"

// AnswerID returns the id of one of the answers of a request whose first answer has the
// id given. Index counts from 0.
func AnswerID(first uuid.UUID, index int) uuid.UUID {
	if index == 0 {
		return first
	}
	return uuid.NewSHA1(first, fmt.Appendf(nil, "answer %d", index))
}

// StartSeveral begins one reply of each model to the same head, as Start does one: all
// or none. A model may stand among models several times; "" is the first of Models. The
// answers become siblings. None of them moves the active head, which the caller moves to
// the answer that is kept. The request's messages are stored once, and move the active head unless
// the request has KeepHead. req.Model says nothing.
//
// The first reply has req.ID, and the ids of the others derive from it, so that a
// request with an ID is idempotent; for another number of answers it is a fault.Conflict. started is false where every reply was there before.
func (s *Service) StartSeveral(ctx context.Context, req Request, models []string) (replies []*Reply, started bool, err error) {
	defer fault.Wrap(&err, "reply.StartSeveral(%s, head %s, %d models)", req.ConversationID, req.HeadID, len(models))
	if len(models) < 2 || len(models) > MaxAnswers {
		return nil, false, fault.New(fault.Invalid, "invalid_parameter", "models", "Ask for 2 to %d answers.", MaxAnswers)
	}
	if name, why := req.Options.Check(); name != "" {
		return nil, false, fault.New(fault.Invalid, "invalid_parameter", name, "%s", why)
	}
	again := req.ID != uuid.Nil
	if !again {
		req.ID = uuid.Must(uuid.NewV7())
	}
	req.aside, req.Messages, req.Metadata = true, slices.Clone(req.Messages), maps.Clone(req.Metadata)
	if req.Metadata == nil {
		req.Metadata = map[string]json.RawMessage{}
	}
	req.Metadata[answers] = strconv.AppendInt(nil, int64(len(models)), 10)
	for i := range req.Messages {
		switch m := &req.Messages[i]; {
		case m.ID != uuid.Nil:
		case again:
			m.ID = messageID(req.ID, i)
		default:
			m.ID = uuid.Must(uuid.NewV7())
		}
	}
	replies, started, err = s.startSeveral(ctx, req, models, again)
	if again && errors.Is(err, fault.Conflict) { // the same request may have come twice at a time
		replies, started, err = s.startSeveral(ctx, req, models, again)
	}
	return replies, started, err
}

func (s *Service) startSeveral(ctx context.Context, req Request, models []string, again bool) (replies []*Reply, started bool, err error) {
	replies = make([]*Reply, len(models))
	var reqs []Request // for those that are missing
	var asked []llm.Model
	var missing []int
	for i, name := range models {
		own := req
		own.ID, own.Model = AnswerID(req.ID, i), name
		model, err := s.model(name)
		if err != nil {
			unknown := *fault.Of(err)
			unknown.Field = fmt.Sprintf("models[%d]", i)
			return nil, false, &unknown
		}
		if again {
			if replies[i], err = s.earlier(ctx, own); err != nil {
				return nil, false, err
			}
		}
		if replies[i] == nil {
			reqs, asked, missing = append(reqs, own), append(asked, model), append(missing, i)
		}
	}
	if len(missing) == 0 {
		return replies, false, nil
	}
	if again {
		if err := s.asBefore(ctx, &reqs[0]); err != nil {
			return nil, false, err
		}
	}
	for _, r := range replies {
		if r != nil && len(req.Messages) == 0 && !req.Continue {
			reqs[0].HeadID = r.head // though another one is active now
		}
	}
	begun, started, err := s.beginAll(ctx, reqs, asked, again)
	if errors.Is(err, tree.ErrReplyLost) {
		err = errJustEnded
	}
	if err != nil {
		return nil, false, err
	}
	for i, r := range begun {
		replies[missing[i]] = r
	}
	return replies, started, nil
}

// beginAll stores what the requests bring, which is the same in each of them, and that
// this server has the replies, and runs them. again says that there may be earlier tries
// with their ids. Of several, one that the same request began elsewhere meanwhile is joined;
// started is false where all were.
func (s *Service) beginAll(ctx context.Context, reqs []Request, models []llm.Model, again bool) (replies []*Reply, started bool, err error) {
	replies = make([]*Reply, len(reqs))
	for i, req := range reqs {
		replies[i] = s.newReply(ctx, req, models[i])
	}
	if err := s.hub.begin(replies...); err != nil {
		for _, r := range replies {
			r.cancel(nil)
		}
		return nil, false, err
	}
	// A client that goes away now may have sent its message all the same.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), prepareTimeout)
	defer cancel()
	prepared, err := s.prepareAll(bounded, reqs, models)
	joined := make([]*Reply, len(replies))
	begun := 0 // or joined
	for err == nil && begun < len(replies) {
		err = s.commit(bounded, replies[begun], prepared[begun], again || begun > 0) // which finds the messages that the first one stored
		if reqs[begun].aside && errors.Is(err, tree.ErrReplyLost) {
			if there, other := s.earlier(bounded, reqs[begun]); there != nil || other != nil {
				joined[begun], err = there, other
			}
		}
		if err == nil {
			begun++
		}
	}
	for i, r := range replies {
		switch {
		case i >= begun || joined[i] != nil:
			s.hub.end(r, "", func() {})
			r.cancel(nil)
			replies[i] = joined[i]
			continue
		case err != nil:
			r.cancel(errStopped)
		}
		s.hub.stored(r)
		if i == 0 && err == nil && prepared[0].untitled {
			s.title(bounded, r, prepared[0].request)
		}
		started = true
		go s.run(r, prepared[i])
	}
	if err != nil {
		return nil, false, err
	}
	return replies, started, nil
}

// prepareAll prepares requests that answer one head: the first one's, also where the
// active head moves meanwhile.
func (s *Service) prepareAll(ctx context.Context, reqs []Request, models []llm.Model) ([]*assignment, error) {
	prepared := make([]*assignment, len(reqs))
	for i, req := range reqs {
		if i > 0 {
			first := prepared[0]
			parent := first.head
			if req.HeadID = first.end(); req.ParentID == nil && len(req.Messages) > 0 {
				req.ParentID = &parent
			}
		}
		var err error
		if prepared[i], err = s.prepareInTurn(ctx, req, models[i]); err != nil {
			return nil, err
		}
	}
	return prepared, nil
}
