package server

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
)

func getContext(r *Request) (Answer, error) {
	w, err := r.window()
	if err != nil {
		return nil, err
	}
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	names := false
	switch given := r.Query("attachments"); deref(given) {
	case "names":
		names = true
	case "data":
	default:
		if given != nil {
			return nil, problemf(CodeInvalidParameter, "attachments", "It must be data or names.")
		}
	}
	parts, err := r.flag("parts", false)
	if err != nil {
		return nil, err
	}
	c, err := r.Contexts().Context(r.Context(), id, head, w)
	if model := r.Query("model"); err == nil && model != nil && r.server.cfg.AlternatesRoles != nil && r.server.cfg.AlternatesRoles(*model) {
		c = c.ByTurns()
	}
	if err == nil && !names && summarize.NamesAttachments(c.Messages) { // which may be many bytes
		return r.contextWithAttachments(c, parts)
	}
	if err != nil {
		return nil, err
	}
	return answerContext(c, parts), nil
}

// answerContext gives a context, and what each of its messages is where parts asks for it.
func answerContext(c summarize.Context, parts bool) answer {
	buffer := buffers.Get().(*[]byte)
	a := answer{status: http.StatusOK, body: c.AppendJSON((*buffer)[:0]), buffer: buffer}
	if parts {
		list, _ := chat.Marshal(c.Parts()) // ids and numbers always encode
		a.body = append(append(append(a.body[:len(a.body)-1], `,"parts":`...), list...), '}')
	}
	return a
}

// contextWithAttachments counts as a read, as a tree does, until the answer is
// written: it may have 43 MB.
func (r *Request) contextWithAttachments(c summarize.Context, parts bool) (Answer, error) {
	leave, err := r.awaitRead()
	if err != nil {
		return nil, err
	}
	if c.Messages, err = r.Contexts().WithAttachments(r.Context(), c.Messages); err != nil {
		leave()
		return nil, err
	}
	return leavingAnswer{answerContext(c, parts), leave}, nil
}

// A leavingAnswer leaves once it is written.
type leavingAnswer struct {
	answer
	leave func()
}

// Write writes the answer, and leaves.
func (a leavingAnswer) Write(w http.ResponseWriter) error {
	defer a.leave()
	return a.answer.Write(w)
}

// window reads what the query says of the window. Its size in tokens wins
// over the model's name, which is then not even looked up: so a client can use
// a model that the server doesn't know.
func (r *Request) window() (w summarize.Window, err error) {
	if reserved := r.Query("reserved_tokens"); reserved != nil {
		n, err := parseTokens(*reserved, 0, "reserved_tokens")
		if err != nil {
			return w, err
		}
		w.ReservedTokens = &n
	}
	if recall := r.Query("recall"); recall != nil {
		says := *recall == "true"
		if !says && *recall != "false" {
			return w, problemf(CodeInvalidParameter, "recall", "It must be true or false.")
		}
		w.Recall = &says
	}
	if most := r.Query("max_context_tokens"); most != nil {
		w.MaxContextTokens, err = parseTokens(*most, 1, "max_context_tokens")
	} else if model := r.Query("model"); model != nil {
		w.MaxContextTokens, err = r.server.modelWindow(*model)
	}
	return w, err
}

func parseTokens(s string, least int, field string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > math.MaxInt32 {
		return 0, problemf(CodeInvalidSetting, field, "It must be a whole number of tokens, %d to %d.", least, math.MaxInt32)
	}
	return n, nil
}

func (s *Server) modelWindow(model string) (int, error) {
	window, known := 0, []string(nil)
	if s.cfg.ModelWindow != nil {
		window, known = s.cfg.ModelWindow(model)
	}
	if window > 0 {
		return window, nil
	}
	names := "No model is known."
	if len(known) > 0 {
		names = "Known are the models whose names begin with " + strings.Join(known, ", ") + "."
	}
	return 0, problemf(CodeUnknownModel, "model", "The window of the model %q is not known. Give max_context_tokens instead. %s", clip(model), names)
}

func explainBranch(r *Request) (Answer, error) {
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	e, err := r.Contexts().Explain(r.Context(), id, head)
	if err != nil {
		return nil, err
	}
	return answerStruct(e)
}

func getSummary(r *Request) (Answer, error) {
	id, summaryID, err := r.ids("summary_id")
	if err != nil {
		return nil, err
	}
	body, priorID, err := r.appendSummary(nil, id, summaryID)
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], `,"prior":`...)
	withPrior, _, err := r.appendSummary(body, id, priorID)
	switch {
	case priorID == uuid.Nil, errors.Is(err, fault.NotFound): // none, or deleted since
		withPrior = append(body, "null"...)
	case err != nil:
		return nil, err
	}
	return answer{status: http.StatusOK, body: append(withPrior, '}')}, nil
}

// appendSummary appends a summary with its text, and tells which one it
// merged.
func (r *Request) appendSummary(dst []byte, conversationID, id uuid.UUID) ([]byte, uuid.UUID, error) {
	if id == uuid.Nil {
		return dst, uuid.Nil, nil
	}
	summary, text, err := r.Contexts().Summary(r.Context(), conversationID, id)
	if err != nil {
		return dst, uuid.Nil, err
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return dst, uuid.Nil, err
	}
	dst = summary.AppendJSON(dst)
	dst = append(append(dst[:len(dst)-1], `,"text":`...), quoted...)
	return append(dst, '}'), summary.Range.PriorSummaryID, nil
}
