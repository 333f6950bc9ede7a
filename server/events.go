package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

// A changeStream is an answer of server-sent events that tell what changes. Like
// an eventStream it is written as they come. A reader that is slower than they are
// is cut off, and can go on after the last event that it has.
type changeStream struct {
	request *Request
	watch   *watch.Watch
	follow  bool // wait for more than what was missed

	readable map[uuid.UUID]bool // conversations that were told of last; nil where all are
}

// told returns those of the changes that the request's principal may know of: of what it
// may read, and of what is gone that it was told of before.
func (s changeStream) told(changes []tree.Change) ([]tree.Change, error) {
	if s.readable == nil || len(changes) == 0 {
		return changes, nil
	}
	var ids []uuid.UUID
	for _, c := range changes {
		if !slices.Contains(ids, c.ConversationID) {
			ids = append(ids, c.ConversationID)
		}
	}
	may, err := s.request.server.cfg.Store.For(s.request.who).Readable(s.request.Context(), ids)
	if err != nil {
		return nil, err
	}
	var told []tree.Change
	for _, c := range changes {
		if slices.Contains(may, c.ConversationID) || c.Kind == tree.ConversationDeleted && s.readable[c.ConversationID] {
			told = append(told, c)
		}
	}
	for _, id := range ids {
		delete(s.readable, id)
	}
	for _, id := range may {
		s.readable[id] = true
	}
	return told, nil
}

func watchTenant(r *Request) (Answer, error) { return r.watch(uuid.Nil) }

func watchConversation(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	return r.watch(id)
}

func (r *Request) watch(conversationID uuid.UUID) (Answer, error) {
	given, err := r.parameter()
	if err != nil {
		return nil, err
	}
	var last *int64
	if given != nil {
		id, err := strconv.ParseInt(*given, 10, 64)
		if err != nil || id < 0 {
			return nil, problemf(CodeInvalidParameter, lastEventID, "%q is no event's id. Send that of the last event you have, or none.", clip(*given))
		}
		last = &id
	}
	follow, err := r.flag("follow", true)
	if err != nil {
		return nil, err
	}
	stream := changeStream{request: r, follow: follow}
	if who := r.who; who.Reader() != access.Everybody {
		stream.readable = map[uuid.UUID]bool{}
		if conversationID != uuid.Nil {
			if _, err := r.Store().Conversation(r.Context(), conversationID); err != nil {
				return nil, err
			}
			stream.readable[conversationID] = true
		}
	}
	stream.watch, err = r.server.cfg.Changes.Watch(r.Context(), r.who.Tenant, conversationID, last)
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// Write writes events until the reader goes away, or the conversation.
func (s changeStream) Write(w http.ResponseWriter) error {
	defer s.watch.Close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // as of an eventStream
	w.WriteHeader(http.StatusOK)
	connection := http.NewResponseController(w)
	write := func(out []byte) error {
		_, err := w.Write(out)
		if err == nil {
			err = connection.Flush()
		}
		if err != nil {
			return readerGone(err)
		}
		return nil
	}
	if s.request.Method == http.MethodHead {
		return nil
	}
	open := s.request.server.metrics.Watches
	open.Inc()
	defer open.Dec()
	id, resumed := s.watch.Started()
	started := positioned(fmt.Appendf(nil, `{"resumed":%t}`, resumed), s.request.position(true)) // also of what it wasn't told of
	if err := write(fmt.Appendf(nil, "id: %d\nevent: stream.started\ndata: %s\n\n", id, started)); err != nil {
		return err
	}
	if !s.follow {
		missed, err := s.told(s.watch.Missed())
		if err != nil {
			return err
		}
		return write(s.events(nil, missed))
	}
	for {
		changes, err := s.next()
		if err == nil {
			changes, err = s.told(changes)
		}
		if cause := (*expelled)(nil); errors.As(context.Cause(s.request.Context()), &cause) {
			err = cause
		} else if s.request.Context().Err() != nil {
			return readerGone(err)
		}
		if err != nil {
			p := toProblem(err)
			s.request.note(err, p)
			return write(streamClosed(nil, p))
		}
		out := s.events(nil, changes)
		if len(changes) == 0 {
			out = append(out, ": still here\n\n"...)
		}
		if err := write(out); err != nil || s.watch.Deleted(changes) {
			return err
		}
	}
}

func (s changeStream) events(dst []byte, changes []tree.Change) []byte {
	position := s.request.position(false)
	for _, c := range changes {
		dst = fmt.Appendf(dst, "id: %d\nevent: %s\ndata: %s\n\n", s.watch.ID(c), c.Kind, positioned(c.AppendJSON(nil), position))
	}
	return dst
}

// next waits for changes, but not longer than the reader should wait for a sign of
// life.
func (s changeStream) next() ([]tree.Change, error) {
	ctx, cancel := context.WithTimeout(s.request.Context(), s.request.server.cfg.Heartbeat)
	defer cancel()
	changes, err := s.watch.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) && s.request.Context().Err() == nil {
		return nil, nil
	}
	return changes, err
}

// listReplies lists the replies that run in a conversation.
func listReplies(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	running, err := r.Replies().Running(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return answerStruct(tree.Page[tree.RunningReply]{Data: running})
}
