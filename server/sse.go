package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/reply"
)

// An eventStream is an answer of server-sent events. It is written as the
// events come, each at once. A reader that is slower than they are gets them in
// larger pieces, and one that stands still is cut off after the timeout that
// every streamed answer has (timeouts.go): it can read on at any time.
type eventStream struct {
	request  *Request
	sources  []*source
	location string // at which the events can be read again, or ""
	form     StreamForm
	merged   chan heard // what comes of several sources; nil of one
}

// A source is a reply in a stream.
type source struct {
	reply *reply.Reply
	after int // id of the last event that the reader has
	event func(dst []byte, e reply.Event) ([]byte, error)
}

// heard is what came of a source.
type heard struct {
	*source
	events []reply.Event
	err    error
}

// A StreamForm says how an API writes the events of a reply. Each function
// appends to dst.
type StreamForm struct {
	Begin  func(dst []byte) []byte // what stands before the first event, sent at once; nil for nothing
	Event  func(dst []byte, e reply.Event) ([]byte, error)
	Closed func(dst []byte, p Problem) []byte // why the stream ends before the reply does
}

// Stream returns an Answer that streams a reply's events in an API's form.
// It begins after the event with the id after.
func (r *Request) Stream(rep *reply.Reply, after int, form StreamForm) Answer {
	return eventStream{request: r, sources: []*source{{rep, after, form.Event}}, form: form}
}

// nativeStream streams replies in the form of the native API. The events of several say
// whose they are.
func (r *Request) nativeStream(after int, replies ...*reply.Reply) eventStream {
	s := eventStream{request: r, form: StreamForm{Closed: streamClosed}}
	for _, rep := range replies {
		s.sources = append(s.sources, &source{rep, after, func(dst []byte, e reply.Event) ([]byte, error) {
			name, data, err := eventOf(e)
			if err != nil {
				return dst, err
			}
			if len(replies) > 1 && e.Started == nil {
				data = withID(data, rep)
			}
			if e.End != nil {
				data = positioned(data, r.position(true))
			}
			return appendEvent(dst, e.ID, name, data), nil
		}})
	}
	return s
}

// streamClosed appends the event of a stream that is closed. It has no id, as it is
// none of a reply's.
func streamClosed(dst []byte, p Problem) []byte {
	data, err := chat.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings
	}
	return fmt.Appendf(dst, "event: stream.closed\ndata: %s\n\n", data)
}

// Write writes the events until the last one, or until the reader goes away.
func (s eventStream) Write(w http.ResponseWriter) error {
	if s.location != "" {
		w.Header().Set("Location", s.location)
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // of nginx and those who took it over
	w.WriteHeader(http.StatusOK)
	connection := http.NewResponseController(w)
	if err := connection.Flush(); err != nil {
		return readerGone(err)
	}
	if s.request.Method == http.MethodHead {
		return nil
	}
	for _, from := range s.sources {
		defer from.reply.Attend(s.request.Context(), false)()
	}
	ctx, leave := context.WithCancel(s.request.Context())
	defer leave()
	s.merge(ctx)
	open := s.request.server.metrics.Streams
	open.Inc()
	defer open.Dec()
	var out []byte
	if s.form.Begin != nil {
		if out = s.form.Begin(out); len(out) > 0 {
			if _, err := w.Write(out); err != nil {
				return readerGone(err)
			}
			if err := connection.Flush(); err != nil {
				return readerGone(err)
			}
		}
	}
	for left := len(s.sources); left > 0; {
		h := s.next(ctx)
		if errors.Is(h.err, reply.ErrEnded) {
			left--
			continue
		}
		if cause := (*expelled)(nil); errors.As(context.Cause(s.request.Context()), &cause) {
			return s.close(w, cause)
		}
		if h.err != nil {
			return h.err
		}
		out = out[:0]
		if len(h.events) == 0 {
			out = append(out, ": still here\n\n"...)
		}
		for _, e := range h.events {
			var err error
			if out, err = h.event(out, e); err != nil {
				return err
			}
			if e.End != nil && e.End.Err != nil {
				s.request.note(e.End.Err, toProblem(e.End.Err)) // the log names it by this request
			}
			h.after = e.ID
		}
		if _, err := w.Write(out); err != nil {
			return readerGone(err)
		}
		if err := connection.Flush(); err != nil {
			return readerGone(err)
		}
	}
	return nil
}

// close tells a reader why its stream ends before the reply does.
func (s eventStream) close(w http.ResponseWriter, cause error) error {
	p := toProblem(cause)
	s.request.note(cause, p)
	if _, err := w.Write(s.form.Closed(nil, p)); err != nil {
		return readerGone(err)
	}
	return nil
}

// merge has the events of several replies come together, until ctx ends.
func (s *eventStream) merge(ctx context.Context) {
	if len(s.sources) == 1 {
		return
	}
	s.merged = make(chan heard)
	for _, from := range s.sources {
		go func() {
			for after, h := from.after, (heard{source: from}); h.err == nil; {
				if h.events, h.err = from.reply.Next(ctx, after); len(h.events) > 0 {
					after = h.events[len(h.events)-1].ID
				}
				select {
				case s.merged <- h:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// next waits for events, but not longer than the reader, and what stands
// between, should wait for a sign of life.
func (s eventStream) next(ctx context.Context) heard {
	bounded, cancel := context.WithTimeout(ctx, s.request.server.cfg.Heartbeat)
	defer cancel()
	h := heard{source: s.sources[0]}
	if s.merged == nil {
		h.events, h.err = h.reply.Next(bounded, h.after)
	} else {
		select {
		case h = <-s.merged:
		case <-bounded.Done():
			h.err = bounded.Err()
		}
	}
	if errors.Is(h.err, context.DeadlineExceeded) && ctx.Err() == nil {
		h.err = nil
	}
	return h
}

// readerGone is the error of a reader that left or stands still.
func readerGone(err error) error {
	return problemf(CodeRequestCanceled, "", "The client went away.").From(fmt.Errorf("writing events: %w", err))
}

// appendEvent appends a server-sent event. Each line of the data becomes a line
// of its own, because the end of a line ends the field.
func appendEvent(dst []byte, id int, name string, data []byte) []byte {
	dst = append(strconv.AppendInt(append(dst, "id: "...), int64(id), 10), "\nevent: "...)
	dst = append(append(dst, name...), '\n')
	for {
		end := bytes.IndexAny(data, "\r\n")
		line := data
		if end >= 0 {
			line = data[:end]
		}
		dst = append(append(append(dst, "data: "...), line...), '\n')
		if end < 0 {
			return append(dst, '\n')
		}
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
}
