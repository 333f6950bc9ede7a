package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// handlers are the operations of openapi.yaml, in the form that the generated
// code calls.
type handlers struct{ *Server }

var _ StrictServerInterface = handlers{}

// An answer is JSON that is ready to be written. The generated answers would
// put what the tree has spliced together through encoding/json once more,
// which costs time and rewrites what was said (& becomes \u0026).
type answer struct {
	status   int
	location string // of what was created
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

func (a answer) write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.location != "" {
		h.Set("Location", a.location)
	}
	w.WriteHeader(a.status)
	_, err := w.Write(a.body)
	if a.buffer != nil && cap(a.body) <= maxBuffer {
		*a.buffer = a.body
		buffers.Put(a.buffer)
	}
	return err
}

func (a answer) VisitCreateConversationResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitListConversationsResponse(w http.ResponseWriter) error  { return a.write(w) }
func (a answer) VisitGetConversationResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitUpdateConversationResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitAppendMessagesResponse(w http.ResponseWriter) error     { return a.write(w) }
func (a answer) VisitGetMessageResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitPruneMessageResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitListChildrenResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitListRootsResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitGetNewestLeafResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitForkMessageResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitListBranchesResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitGetTranscriptResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitGetContextResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitExplainBranchResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitCreateCompactionResponse(w http.ResponseWriter) error   { return a.write(w) }
func (a answer) VisitListCompactionsResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitGetSummaryResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitCreateImportResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitSearchResponse(w http.ResponseWriter) error             { return a.write(w) }

func conversationPath(id uuid.UUID) string { return "/v1/conversations/" + id.String() }

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
