package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// contexts is the part of the service that the request may see.
func (s *Server) contexts(ctx context.Context) *summarize.Service {
	return s.cfg.Contexts.ForTenant(callOf(ctx).tenant)
}

// checkSettings refuses a conversation's settings that can't stand.
func (s *Server) checkSettings(settings jsonObject) error {
	return s.cfg.Contexts.CheckSettings(json.RawMessage(settings))
}

// parseBranch reads the ids of a conversation and of a head in it.
func (h handlers) parseBranch(ctx context.Context, conversation, head string) (conversationID, headID uuid.UUID, err error) {
	if conversationID, err = parseID(conversation, "conversation_id"); err == nil {
		headID, err = parseHead(ctx, h.store(ctx), conversationID, head)
	}
	return conversationID, headID, err
}

func (h handlers) GetContext(ctx context.Context, r GetContextRequestObject) (GetContextResponseObject, error) {
	w, err := h.parseWindow(r.Params)
	if err != nil {
		return nil, err
	}
	id, head, err := h.parseBranch(ctx, r.ConversationID, r.HeadID)
	if err != nil {
		return nil, err
	}
	memory := memories.Get().(*tree.Memory)
	defer memories.Put(memory) // when the context's JSON is written
	c, err := h.contexts(ctx).Context(ctx, id, head, w, tree.Into(memory))
	if err != nil {
		return nil, err
	}
	buffer := buffers.Get().(*[]byte)
	return answer{status: http.StatusOK, body: c.AppendJSON((*buffer)[:0]), buffer: buffer}, nil
}

// memories are those that contexts are read into.
var memories = sync.Pool{New: func() any { return tree.NewMemory() }}

// parseWindow reads what the query says of the window. Its size in tokens wins
// over the model's name, which is then not even looked up: so a client can use
// a model that the server doesn't know.
func (h handlers) parseWindow(p GetContextParams) (w summarize.Window, err error) {
	if p.ReservedTokens != nil {
		n, err := parseTokens(*p.ReservedTokens, 0, "reserved_tokens")
		if err != nil {
			return w, err
		}
		w.ReservedTokens = &n
	}
	switch {
	case p.MaxContextTokens != nil:
		w.MaxContextTokens, err = parseTokens(*p.MaxContextTokens, 1, "max_context_tokens")
	case p.Model != nil:
		w.MaxContextTokens, err = h.modelWindow(*p.Model)
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

func (h handlers) modelWindow(model string) (int, error) {
	window, known := 0, []string(nil)
	if h.cfg.ModelWindow != nil {
		window, known = h.cfg.ModelWindow(model)
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

func (h handlers) ExplainBranch(ctx context.Context, r ExplainBranchRequestObject) (ExplainBranchResponseObject, error) {
	id, head, err := h.parseBranch(ctx, r.ConversationID, r.HeadID)
	if err != nil {
		return nil, err
	}
	e, err := h.contexts(ctx).Explain(ctx, id, head)
	if err != nil {
		return nil, err
	}
	return answerStruct(e)
}

// answerStruct gives a 200 with a thing that has no JSON of its own.
func answerStruct(thing any) (answer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(thing)
	return answer{status: http.StatusOK, body: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, err
}

func (h handlers) GetSummary(ctx context.Context, r GetSummaryRequestObject) (GetSummaryResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	summaryID, err := parseID(r.SummaryID, "summary_id")
	if err != nil {
		return nil, err
	}
	body, priorID, err := h.appendSummary(ctx, nil, id, summaryID)
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], `,"prior":`...)
	withPrior, _, err := h.appendSummary(ctx, body, id, priorID)
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
func (h handlers) appendSummary(ctx context.Context, dst []byte, conversationID, id uuid.UUID) ([]byte, uuid.UUID, error) {
	if id == uuid.Nil {
		return dst, uuid.Nil, nil
	}
	summary, text, err := h.contexts(ctx).Summary(ctx, conversationID, id)
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
