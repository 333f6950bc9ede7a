package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/coppice-chat/coppice/reply"
)

// An eventStream is an answer of server-sent events. It is written as the
// events come, each at once. A reader that is slower than they are gets them in
// larger pieces, and one that stands still is cut off after the timeout that
// every streamed answer has (timeouts.go): it can read on at any time.
type eventStream struct {
	request  *Request
	reply    *reply.Reply
	after    int    // id of the last event that the reader has
	location string // at which the events can be read again, or ""
	form     StreamForm
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
	return eventStream{request: r, reply: rep, after: after, form: form}
}

// nativeStream is the form of the native API.
func (r *Request) nativeStream() StreamForm {
	return StreamForm{Closed: streamClosed, Event: func(dst []byte, e reply.Event) ([]byte, error) {
		name, data, err := eventOf(e)
		if err != nil {
			return dst, err
		}
		if e.End != nil {
			data = positioned(data, r.position(true))
		}
		return appendEvent(dst, e.ID, name, data), nil
	}}
}

// streamClosed appends the event of a stream that is closed. It has no id, as it is
// none of a reply's.
func streamClosed(dst []byte, p Problem) []byte {
	data, err := encode(p)
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
	defer s.reply.Attend(s.request.Context(), false)()
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
	for {
		events, err := s.next()
		if errors.Is(err, reply.ErrEnded) {
			return nil
		}
		if cause := (*expelled)(nil); errors.As(context.Cause(s.request.Context()), &cause) {
			return s.close(w, cause)
		}
		if err != nil {
			return err
		}
		out = out[:0]
		if len(events) == 0 {
			out = append(out, ": still here\n\n"...)
		}
		for _, e := range events {
			if out, err = s.form.Event(out, e); err != nil {
				return err
			}
			if e.End != nil && e.End.Err != nil {
				s.request.note(e.End.Err, toProblem(e.End.Err)) // the log names it by this request
			}
			s.after = e.ID
		}
		if _, err := w.Write(out); err != nil {
			return readerGone(err)
		}
		if err := connection.Flush(); err != nil {
			return readerGone(err)
		}
	}
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

// next waits for events, but not longer than the reader, and what stands
// between, should wait for a sign of life.
func (s eventStream) next() ([]reply.Event, error) {
	ctx, cancel := context.WithTimeout(s.request.Context(), s.request.server.cfg.Heartbeat)
	defer cancel()
	events, err := s.reply.Next(ctx, s.after)
	if errors.Is(err, context.DeadlineExceeded) && s.request.Context().Err() == nil {
		return nil, nil
	}
	return events, err
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
