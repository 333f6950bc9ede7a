package server

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/replica"
)

// handle runs the handler, and writes what that answers. Where the database has a
// replica, this is the one place that says which of the two a request reads from.
//
// A request that may read from the replica, and can't, reads from the primary.
// Any other one may have written: its answer says how far the database's log is,
// and the next reads see that.
func (r *Request) handle() error {
	of := r.server.cfg.Replica
	switch {
	case of == nil:
		return r.run()
	case r.route.Header == position:
		return r.read(of)
	case r.who.Tenant == "", !r.route.May.has(Follows) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return r.run()
	}
	a, err := r.route.Handle(r)
	r.wrote(of, replica.Header)
	if err != nil {
		return err
	}
	if r.route.May.has(Streams) { // and writes meanwhile
		defer r.wrote(of, http.TrailerPrefix+replica.Header)
	}
	return r.write(a)
}

// run runs the handler on what the request reads from now.
func (r *Request) run() error {
	a, err := r.route.Handle(r)
	if err != nil {
		return err
	}
	return r.write(a)
}

// write sends an answer, to its end.
func (r *Request) write(a Answer) error {
	if told, ok := a.(Told); ok {
		r.About(told.ConversationID)
	}
	size := 0
	if whole, ok := a.(sized); ok {
		size = whole.Size()
	}
	if err := r.HoldAnswer(size); err != nil {
		return err
	}
	if err := a.Write(&r.answer); err != nil {
		return err
	}
	return r.answer.finish()
}

// read reads from the replica if that has what the client wrote, and again from
// the primary if the replica fails.
func (r *Request) read(of *replica.Replica) error {
	token, err := r.parameter()
	if err != nil {
		return err
	}
	reading, err := of.Read(r.Context(), r.who.Tenant, r.conversation(), deref(token))
	if err != nil {
		return err
	}
	if reading == nil {
		return r.run()
	}
	whole := r.Request
	again := func() bool {
		defer func() { // also after a panic
			r.reading, r.Request = nil, whole
			reading.Close()
		}()
		r.reading, r.Request = reading.Store.For(r.who), whole.WithContext(reading.Context)
		err = r.run()
		return reading.Again(err)
	}()
	if !again || whole.Context().Err() != nil || r.answer.status != 0 {
		return err
	}
	return r.run()
}

// wrote notes how far the database's log is after a write, and says so in a header
// of the answer, or in its trailer.
func (r *Request) wrote(of *replica.Replica, header string) {
	if token := of.Wrote(r.Context(), r.who.Tenant, r.conversation()); token != "" {
		r.answer.Header().Set(header, token)
	}
}

// position returns what an event of a stream says of how far the database's log
// is: as far as that of any write that readers here were told of, or, where fresh
// is set, as it is now. Without a replica it is "".
func (r *Request) position(fresh bool) string {
	switch of := r.server.cfg.Replica; {
	case of == nil:
		return ""
	case fresh:
		return of.Wrote(r.Context(), r.who.Tenant, r.conversation())
	default:
		return of.Newest(r.who.Tenant)
	}
}

// positioned adds a position to the data of an event.
func positioned(data []byte, position string) []byte {
	if position == "" {
		return data
	}
	return fmt.Appendf(data[:len(data)-1], `,"position":"%s"}`, position)
}

// conversation returns the conversation that the path names; uuid.Nil where it
// names none.
func (r *Request) conversation() uuid.UUID {
	id, err := r.ID("conversation_id")
	if err != nil || r.route.api != r.server.apis[0] {
		return uuid.Nil
	}
	return id
}
