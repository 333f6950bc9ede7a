package server

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A Request is a request that is being served, from the outermost layer to the
// handler.
type Request struct {
	*http.Request
	server *Server
	route  *route // that of nothing, where nothing is at the path
	allow  string // the methods that the path takes, where it doesn't take this one
	values [maxIDs]string
	query  url.Values // nil where there is none
	body   body       // decoded; nil where the route has none
	answer writer

	id    string
	who   access.Principal // without a tenant where a route needs no key
	about uuid.UUID        // conversation that it names elsewhere than in its path; uuid.Nil for none
	code  Code             // of the problem it ended in
	err   error            // behind an internal error

	held   []func()                // give back what it holds in the limits of bytes
	made   func()                  // tells that its answer is made
	coming *incoming               // its body as it comes; nil where there is none
	end    context.CancelCauseFunc // of the request, where it may last; else nil

	reading *tree.Store // over the replica, while the handler reads from that; else nil
}

// Store returns the store of the request's tenant.
func (r *Request) Store() *tree.Store {
	if r.reading != nil {
		return r.reading
	}
	return r.server.cfg.Store.For(r.who)
}

// Contexts returns the service of contexts for the request's tenant.
func (r *Request) Contexts() *summarize.Service {
	if r.reading != nil {
		return r.server.cfg.Contexts.Over(r.reading)
	}
	return r.server.cfg.Contexts.For(r.who)
}

// Replies returns the service of replies for the request's tenant.
func (r *Request) Replies() *reply.Service { return r.server.cfg.Replies.For(r.who) }

// Searches returns the service that answers questions about the branches of Store.
func (r *Request) Searches() *search.Service { return r.server.cfg.Search }

// About notes, for the log, which conversation the request is about, where its path
// doesn't say so.
func (r *Request) About(conversationID uuid.UUID) { r.about = conversationID }

// Value returns the value of a parameter in the pattern, unescaped.
func (r *Request) Value(name string) string {
	i := slices.Index(r.route.ids, name)
	if i < 0 {
		return ""
	}
	value := r.values[i]
	if r.URL.RawPath != "" { // which the router reads then
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
	}
	return value
}

// ID reads a parameter of the pattern that is an id.
func (r *Request) ID(name string) (uuid.UUID, error) {
	value := r.Value(name)
	if value == "" {
		return uuid.Nil, problemf(CodeInvalidID, name, "The path has no id here. Ids are UUIDs such as 01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa.")
	}
	return parseID(value, name)
}

// ids reads the ids of a conversation and of something in it.
func (r *Request) ids(name string) (conversationID, id uuid.UUID, err error) {
	if conversationID, err = r.ID("conversation_id"); err == nil {
		id, err = r.ID(name)
	}
	return conversationID, id, err
}

// branch reads the ids of a conversation and of a head in it, where uuid.Nil
// stands for the active one.
func (r *Request) branch() (conversationID, headID uuid.UUID, err error) {
	if conversationID, err = r.ID("conversation_id"); err == nil && r.Value("head_id") != "active" {
		headID, err = r.ID("head_id")
	}
	return conversationID, headID, err
}

// Query returns the value of a query parameter, or nil if the request lacks it.
func (r *Request) Query(name string) *string {
	if given, ok := r.query[name]; ok {
		return &given[0]
	}
	return nil
}

// flag is a query parameter that is true or false.
func (r *Request) flag(name string, otherwise bool) (bool, error) {
	switch value := r.Query(name); {
	case value == nil:
		return otherwise, nil
	case *value == "true", *value == "false":
		return *value == "true", nil
	}
	return false, problemf(CodeInvalidParameter, name, "It is true or false.")
}

// needs is the value of a query parameter that has to be there.
func (r *Request) needs(name string) (string, error) {
	if value := r.Query(name); value != nil {
		return *value, nil
	}
	return "", problemf(CodeInvalidParameter, name, "The parameter is required. Add ?%s= and a value.", name)
}

// paging reads limit and cursor. The tree checks the cursor.
func (r *Request) paging() (p tree.Paging, err error) {
	if limit := r.Query("limit"); limit != nil {
		if p.Limit, err = strconv.Atoi(*limit); err != nil || p.Limit < 1 || p.Limit > tree.MaxPage {
			return p, problemf(CodeInvalidLimit, "limit", "Ask for 1 to %d rows.", tree.MaxPage)
		}
	}
	if cursor := r.Query("cursor"); cursor != nil {
		if p.Cursor = *cursor; p.Cursor == "" {
			return p, problemf(CodeInvalidCursor, "cursor", "The cursor is empty. Pass next_cursor back as it came, or leave it out to start anew.")
		}
	}
	return p, nil
}

// list reads what a list is asked for by: a conversation, and a page.
func (r *Request) list() (conversationID uuid.UUID, p tree.Paging, err error) {
	if conversationID, err = r.ID("conversation_id"); err == nil {
		p, err = r.paging()
	}
	return conversationID, p, err
}

// parameter is the route's header, or nil where it isn't there.
func (r *Request) parameter() (*string, error) {
	given := r.Header.Values(r.route.Header)
	switch len(given) {
	case 0:
		return nil, nil
	case 1:
		return &given[0], nil
	}
	return nil, problemf(CodeInvalidParameter, r.route.Header, "The header stands more than once. Send it once.")
}

// decode reads the body that the route takes, strictly.
func (r *Request) decode() error {
	if r.route.Body.make == nil {
		return nil
	}
	r.body = r.route.Body.make()
	data, err := r.ReadJSON()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		if r.route.Body.required {
			return errNoBody
		}
		return nil
	}
	o := reader.OpenStrict(data)
	if o.Err != nil {
		return o.Err
	}
	return r.body.read(o)
}

// ReadJSON reads the body. The client must call it JSON, and it must not be
// larger than the API's limit. Without a body ReadJSON returns nothing.
func (r *Request) ReadJSON() ([]byte, error) {
	if r.ContentLength != 0 && r.Body != http.NoBody {
		if most := r.route.api.MaxBody; r.ContentLength > most {
			return nil, tooLarge(most)
		}
		kind := r.Header.Get("Content-Type")
		if err := checkContentType(kind); err != nil && (r.Method != http.MethodPatch || !isMergePatch(kind)) {
			return nil, err
		}
	}
	return r.ReadAny()
}

// ReadAny reads the body, of whatever type, as ReadJSON does.
func (r *Request) ReadAny() ([]byte, error) {
	most := r.route.api.MaxBody
	switch {
	case r.ContentLength > most:
		return nil, tooLarge(most)
	case r.ContentLength == 0 || r.Body == http.NoBody:
		return nil, nil
	}
	return r.readBody(http.MaxBytesReader(r.answer.ResponseWriter, r.Body, most), most, "body", tooLarge)
}

// readBody reads a body once it may be in memory. It holds at most so many bytes; what
// limited refuses beyond them is the error that tooLarge makes.
func (r *Request) readBody(limited io.Reader, most int64, what string, tooLarge func(most int64) error) (data []byte, err error) {
	problem := func(err error) error {
		var over *http.MaxBytesError
		switch {
		case err == nil:
			return nil
		case asError(err, &over):
			return tooLarge(most)
		}
		return problemf(CodeIncompleteBody, "", "%s Send the request again.", endedEarly(what, err)).From(err)
	}
	if r.ContentLength >= 0 {
		if _, err := r.holdBody(r.ContentLength); err != nil {
			return nil, err
		}
		data, err = readSized(limited, int(r.ContentLength))
		return data, problem(err)
	}
	start, err := io.ReadAll(io.LimitReader(limited, smallBytes))
	if err != nil || len(start) < smallBytes {
		return start, problem(err)
	}
	shrink, err := r.holdBody(most)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.MultiReader(bytes.NewReader(start), limited))
	shrink(int64(len(data)))
	return data, problem(err)
}

// firstRead is how many bytes of memory a body gets before its client has sent
// any. The rest follows what comes: a length is a mere claim.
const firstRead = 1 << 20

// readSized reads a body of so many bytes.
func readSized(body io.Reader, size int) ([]byte, error) {
	data := make([]byte, min(size, firstRead))
	for got := 0; ; {
		n, err := io.ReadFull(body, data[got:])
		if got += n; err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || got == size {
			return data[:got], err
		}
		data = append(make([]byte, 0, min(size, 4*got)), data...)
		data = data[:cap(data)]
	}
}

func tooLarge(most int64) error {
	return problemf(CodeBodyTooLarge, "", "The request has over %s, which is the most this server takes. Send messages in several requests, and a long text as an attachment.", fault.Bytes(most))
}

var errNoBody = problemf(CodeMissingBody, "", "The request needs a body: a JSON object.")

// checkEncoding refuses compressed bodies: their size says nothing of what is
// in them.
func (r *Request) checkEncoding() error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return problemf(CodeUnsupportedMediaType, "Content-Encoding", "This server takes no compressed bodies. Send it as it is, without Content-Encoding.")
	}
	return nil
}

// isMergePatch tells a merge patch (RFC 7396) from other JSON.
func isMergePatch(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/merge-patch+json"
}

func checkContentType(header string) error {
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" {
		return problemf(CodeUnsupportedMediaType, "", "Send the body as JSON in UTF-8, with the header Content-Type: application/json.")
	}
	return nil
}
