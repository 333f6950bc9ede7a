package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// An answer is JSON that is ready to be written. The JSON of the tree doesn't pass
// through encoding/json, which would cost time and rewrite messages (& becomes
// \u0026).
type answer struct {
	status   int
	location string // of what was created
	tag      string // entity tag; "" for none
	kind     string // media type; "" is JSON
	body     []byte
	buffer   *[]byte // that body is in, to be used again; nil for none
}

// buffers are those that answers are put together in: made anew each time, a page
// of 50 messages took 1.07 to 1.12 times as long. Answers larger than maxBuffer
// have their own.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20

// answerWith gives a 200 with one thing.
func answerWith(thing json.Marshaler) (answer, error) {
	buffer := buffers.Get().(*[]byte)
	body, err := appendThing((*buffer)[:0], thing)
	return answer{status: http.StatusOK, body: body, buffer: buffer}, err
}

// answerCreated gives a 201, or a 200 where the thing was there before.
func answerCreated(thing json.Marshaler, created bool, location string) (answer, error) {
	a, err := answerWith(thing)
	if created {
		a.status, a.location = http.StatusCreated, location
	}
	return a, err
}

// answerPage gives a list.
func answerPage[T json.Marshaler](p tree.Page[T]) (answer, error) {
	buffer := buffers.Get().(*[]byte)
	body, err := appendList(append((*buffer)[:0], `{"data":`...), p.Data)
	if err != nil {
		return answer{}, err
	}
	body = append(body, `,"next_cursor":`...)
	if p.Next == "" {
		body = append(body, "null"...)
	} else {
		body = strconv.AppendQuote(body, p.Next) // base64url, which needs no escape
	}
	return answer{status: http.StatusOK, body: append(body, '}'), buffer: buffer}, nil
}

func appendList[T json.Marshaler](dst []byte, list []T) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendThing(dst, item); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendThing(dst []byte, thing json.Marshaler) ([]byte, error) {
	if appender, ok := thing.(interface{ AppendJSON([]byte) []byte }); ok {
		return appender.AppendJSON(dst), nil
	}
	encoded, err := thing.MarshalJSON()
	return append(dst, encoded...), err
}

// Size returns how many bytes of memory the answer's body takes.
func (a answer) Size() int { return len(a.body) }

// Write writes the answer, and returns its buffer to the pool.
func (a answer) Write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", cmp.Or(a.kind, "application/json"))
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.tag != "" {
		h.Set("ETag", a.tag)
	}
	w.WriteHeader(a.status)
	_, err := w.Write(a.body)
	if a.buffer != nil && cap(a.body) <= maxBuffer {
		*a.buffer = a.body
		buffers.Put(a.buffer)
	}
	return err
}

// answerStruct gives a 200 with a thing that has no JSON of its own.
func answerStruct(thing any) (answer, error) {
	body, err := chat.Marshal(thing)
	return answer{status: http.StatusOK, body: body}, err
}

// noContent is a 204.
type noContent struct{}

func (noContent) Write(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func conversationPath(id uuid.UUID) string { return "/v1/conversations/" + id.String() }

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
