package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// createCompletion answers a history. One that is recorded becomes a branch; any
// other goes to the model and leaves nothing.
func (c Recognition) createCompletion(r *server.Request, body []byte, t *attempt) (server.Answer, error) {
	req, err := ParseChat(body)
	if err != nil {
		return nil, err
	}
	if !req.Echo.fit() {
		return nil, fault.New(fault.Invalid, codeValue, "metadata", "The metadata have more than %d bytes.", maxEcho)
	}
	rep, err := c.answer(r, req, t)
	if err != nil {
		return nil, inMessages(err)
	}
	r.Release()
	if req.Stream {
		if err := begun(r, rep); err != nil {
			return nil, err
		}
		return followChunks(r, rep, req.Usage), nil
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Status == reply.StatusFailed && !saidNothing(end) {
		err = end.Err
	}
	if err != nil {
		return nil, err
	}
	turn := turnOf(rep, end.Message)
	return answer{marshal(turn.Completion(endOf(end))), turn.Node.stored()}, nil
}

// beginning is how long a stream may have nothing to say before its client is told
// that it has begun.
const beginning = 3 * time.Second

// begun waits for the first piece of an answer. Where it fails before, that is the
// request's error, and the SDKs try again as they do with OpenAI.
func begun(r *server.Request, rep *reply.Reply) error {
	ctx, cancel := context.WithTimeout(r.Context(), beginning)
	defer cancel()
	for after := 0; ; {
		events, err := rep.Next(ctx, after)
		switch {
		case r.Context().Err() != nil:
			return r.Context().Err()
		case ctx.Err() != nil || errors.Is(err, reply.ErrEnded):
			return nil
		case err != nil:
			return err
		}
		for _, e := range events {
			switch {
			case e.Started != nil || e.Message != nil: // nothing of the answer yet
				after = e.ID
			case e.End != nil && e.End.Status == reply.StatusFailed && e.End.Message == nil && !saidNothing(*e.End):
				return e.End.Err
			default:
				return nil
			}
		}
	}
}

// answer begins the reply, or finds the one that an earlier attempt of the request
// began.
func (c Recognition) answer(r *server.Request, req *Request, t *attempt) (*reply.Reply, error) {
	if err := req.checkModel(r); err != nil {
		return nil, err
	}
	ask := reply.Request{
		Prompt: &reply.Prompt{Messages: raw(req.Messages), Exact: true},
		Model:  req.Model, Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens, Extra: req.Extra, AnyEnd: true, Recall: req.Recall,
		Metadata: map[string]json.RawMessage{"openai": marshal(storedMetadata{Echo: &req.Echo, Completion: t.key})},
	}
	if c.records(r, req) {
		rep, err := t.answer(r, func() (*reply.Reply, error) { return c.record(r, req, t, ask) })
		if err == nil || req.Store || !fault.Refused(err) {
			return rep, err
		}
		// The client didn't ask for it to be stored, and is answered all the same.
	}
	t.begins(nil)
	return r.Replies().Ask(r.Context(), ask)
}

// record stores what is new in the history, and begins the reply to it.
func (c Recognition) record(r *server.Request, req *Request, t *attempt, ask reply.Request) (*reply.Reply, error) {
	req, files, err := req.kept()
	if err != nil {
		return nil, err
	}
	conversation, err := conversationOf(r, req)
	if err != nil {
		return nil, err
	}
	prompt := ask.Prompt
	start := func(path tree.Path, rest []tree.NewMessage) (*reply.Reply, error) {
		if t.retry && path.Known == len(req.Messages) {
			if rep, err := t.earlier(r, NodeID{conversation, path.HeadID}); rep != nil || err != nil {
				return rep, err
			}
		}
		ask.ConversationID, ask.HeadID, ask.Messages, ask.PathHash = conversation, path.HeadID, rest, true
		if root := uuid.Nil; path.Known == 0 && len(rest) > 0 {
			ask.ParentID = &root
		}
		if ask.Prompt = nil; !c.Managed {
			ask.Prompt = &reply.Prompt{Messages: prompt.Messages, Tokens: path.Tokens, Exact: prompt.Exact}
		}
		rep, _, err := r.Replies().Start(r.Context(), ask)
		return rep, inHistory(err, path.Known)
	}
	path, rest, err := r.Store().FindRest(r.Context(), conversation, req.Messages)
	if err == nil || errors.Is(err, fault.NotFound) {
		if err := files.store(r, req.Messages[path.Known:]...); err != nil {
			return nil, err
		}
	}
	if err == nil && len(rest) <= tree.MaxChain {
		if rep, err := start(path, rest); !errors.Is(err, fault.Conflict) && !errors.Is(err, fault.NotFound) {
			return rep, err
		}
	} else if err != nil && !errors.Is(err, fault.NotFound) {
		return nil, err
	}
	// The conversation is new, or changes meanwhile, or there is more to store than one
	// commit takes: that much is an import, which holds a connection for a while.
	leave := func() {}
	if len(req.Messages)-path.Known > tree.MaxChain {
		if leave, err = r.Import(r.Context()); err != nil {
			return nil, err
		}
	}
	path, err = r.Store().AppendPath(r.Context(), tree.NewConversation{ID: conversation, Title: summarize.TitleOf(req.Messages...)}, req.Messages)
	leave()
	if err != nil {
		return nil, err
	}
	ask.ParentID = nil
	return start(path, nil)
}

// inHistory moves the field of a refusal to where the history has it, of which so
// many messages are known.
func inHistory(err error, known int) error {
	if !fault.Refused(err) {
		return err
	}
	e, i := *fault.Of(err), 0
	member := strings.TrimPrefix(e.Field, "message")
	if n, _ := fmt.Sscanf(e.Field, "messages[%d]", &i); n == 1 {
		_, member, _ = strings.Cut(e.Field, "]")
	} else if member == e.Field || member != "" && member[0] != '.' {
		return err
	}
	e.Field = fmt.Sprintf("messages[%d]%s", known+i, member)
	return &e
}

// inMessages names the parameter of this API that a refusal of the tree's or of
// the reply's is about.
func inMessages(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch field, _, _ := strings.Cut(e.Field, "["); field {
	case "head_id", "parent_id", "id":
		e.Field = "messages"
	case "max_output_tokens":
		e.Field = "max_completion_tokens"
	}
	return &e
}

// followChunks answers with the chunks of a reply.
func followChunks(r *server.Request, rep *reply.Reply, usage bool) server.Answer {
	var c *Chunks
	begin := func(dst []byte, stored *tree.Message) []byte {
		if c != nil {
			return dst
		}
		c = NewChunks(turnOf(rep, stored), usage)
		return c.Begin(dst)
	}
	form := server.StreamForm{
		Event: func(dst []byte, e reply.Event) ([]byte, error) {
			switch {
			case e.Started != nil:
				return begin(dst, nil), nil
			case e.Message != nil:
				return dst, nil // the server answered its own call
			case e.Delta != nil:
				return c.Add(begin(dst, nil), Delta{Reasoning: e.Delta.Reasoning, Text: e.Delta.Content, Refusal: e.Delta.Refusal, Calls: e.Delta.ToolCalls}), nil
			case e.End.Message == nil && e.End.Err != nil && c == nil && !saidNothing(*e.End):
				return appendEvent(dst, "", Refuse(e.End.Err).JSON()), nil
			}
			dst = begin(dst, e.End.Message)
			return c.End(dst, endOf(*e.End)), nil
		},
		Closed: func(dst []byte, p server.Problem) []byte {
			return appendEvent(dst, "", RefuseStatus(p.Status, string(p.Code), "", p.Detail).JSON())
		},
	}
	return completionStream{r.Stream(rep, 0, form), NodeID{rep.ConversationID(), rep.MessageID()}.stored()}
}

// A completionStream is a stream of chunks, with the native ids of the answer if
// it is recorded.
type completionStream struct {
	server.Answer
	node *NodeID
}

// Write writes the chunks.
func (s completionStream) Write(w http.ResponseWriter) error {
	s.node.lead(w.Header())
	w.Header().Set("Cache-Control", "no-cache")
	return s.Answer.Write(w)
}

// stored is the node of an answer that is recorded; nil of any other.
func (n NodeID) stored() *NodeID {
	if n.Conversation == uuid.Nil {
		return nil
	}
	return &n
}
