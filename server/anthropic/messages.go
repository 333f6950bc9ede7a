package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// createMessage answers a history.
func (s service) createMessage(r *server.Request) (server.Answer, error) {
	req, body, passed, err := s.read(r)
	switch {
	case err != nil:
		return nil, err
	case passed:
		return s.pass(r, req, body)
	}
	return convert(r, req, body)
}

// read reads a request. One that the upstream answers is passed: it may be nil, because what
// can't be read the upstream refuses in its words.
func (s service) read(r *server.Request) (req *wire.Request, body []byte, passed bool, err error) {
	if body, err = r.ReadJSON(); err != nil {
		return nil, nil, false, err
	}
	if req, err = wire.Parse(body); s.upstream != nil && (err != nil || !has(r, req.Model)) {
		return req, body, true, nil
	}
	return req, body, false, err
}

// has tells whether a model of the server's own has this name, or this alias.
func has(r *server.Request, model string) bool {
	return slices.Contains(r.Replies().Names(), model)
}

// convert has one of the server's own models answer.
func convert(r *server.Request, req *wire.Request, body []byte) (server.Answer, error) {
	if err := r.Replies().CheckModel(req.Model); err != nil {
		return nil, err
	}
	if req.Continues {
		return nil, errThread
	}
	entries, extra, err := req.Chat()
	if err != nil {
		return nil, err
	}
	t := turn{r, req, entries, attemptOf(r, body), nil}
	rep, unrecorded, err := t.begin(reply.Request{
		Prompt: t.prompt(), MustFit: true, AnyEnd: true,
		Model: req.Model, Temperature: req.Temperature, MaxOutputTokens: t.outputTokens(),
		Options: reply.Options{TopP: req.TopP, Stop: req.StopSequences}, Extra: extra,
	})
	if err != nil {
		return nil, err
	}
	return t.answered(rep, unrecorded, true)
}

// answered answers with a reply; a stream as follow has it.
func (t turn) answered(rep *reply.Reply, unrecorded error, pieces bool) (server.Answer, error) {
	a, err := t.Replied(rep, t.request.Stream, t.follow(rep, pieces), func(end reply.End) (json.RawMessage, error) {
		if end.Status == reply.StatusStopped {
			return nil, errStopped
		}
		return t.answerOf(rep, end).Encode(), nil
	})
	if err != nil {
		t.recognizer().TakeBack(t.Context(), rep, err, true)
		return nil, err
	}
	a.Unrecorded = unrecorded
	return a, nil
}

// errThread is the error of a request without its history. The SDKs then send it.
var errThread = fault.New(fault.NotFound, wire.ThreadNotFound, "thread", "This server keeps no threads of Anthropic's. Send the whole conversation.")

// A turn is a request that is answered.
type turn struct {
	*server.Request
	request *wire.Request
	entries []wire.Entry
	attempt recognize.Attempt
	hidden  error // why the history can't be recorded; nil if it can
}

// outputTokens is what the answer may have, if the settings reserve as much for
// answers. Clients ask for all that Anthropic's models can give, which is more than the
// window of many others.
func (t turn) outputTokens() int {
	settings, err := t.Contexts().SettingsOf(tree.Conversation{}, summarize.Window{})
	if err != nil || t.request.MaxTokens > settings.ReservedTokens {
		return 0
	}
	return t.request.MaxTokens
}

// Headers of a request that say what becomes of it.
const (
	contextHeader = "X-Coppice-Context" // managed: the model reads the branch's context, with its summaries
	claudeCode    = "X-Claude-Code-Session-Id"
)

// records tells whether a request is recorded. Claude Code asks for titles and the like
// by requests of the same session: these have no tools.
func (t turn) records() bool {
	if recorded, said := recognize.Recorded(t.Header); said {
		return recorded
	}
	return t.Header.Get(claudeCode) == "" || t.request.Tools
}

func (t turn) managed() bool { return t.Header.Get(contextHeader) == "managed" }

// begin begins the reply, or finds the one that an earlier attempt of the request
// began. unrecorded says why a reply that was to be recorded isn't; nil if it is.
func (t turn) begin(ask reply.Request) (rep *reply.Reply, unrecorded, err error) {
	var record func() (*reply.Reply, error)
	if t.records() {
		record = func() (*reply.Reply, error) {
			if t.hidden != nil {
				return nil, t.hidden
			}
			return t.record(ask)
		}
	}
	return recognize.RecordOr(t.Context(), t.attempt.Stops, record, func() (*reply.Reply, error) { return t.Replies().Ask(t.Context(), ask) },
		func(err error) bool { return fault.Of(err).Code == "prompt_too_long" })
}

// attemptOf says what request a request repeats.
func attemptOf(r *server.Request, body []byte) recognize.Attempt {
	a := recognize.AttemptOf(r.Header, r.URL.Path, body)
	a.Stops = true // if the client goes, nobody reads the rest
	return a
}

// recognizer recognizes the histories of the request's tenant.
func (t turn) recognizer() recognize.Service {
	return recognize.Service{Store: t.Store(), Replies: t.Replies()}
}

// record stores what is new in the history, and begins the reply to it.
func (t turn) record(ask reply.Request) (*reply.Reply, error) {
	turn := recognize.Turn{Session: recognize.Session(t.Header, nil), User: t.request.UserID}
	if id := sessionOf(t.request.UserID); id != "" && turn.Session == "" {
		turn.Session = claudeCode + "\x00" + id
	}
	files := recognize.Files{}
	for _, e := range t.entries {
		m, err := files.Link(e.Message, e.Field, "content")
		if err != nil {
			return nil, err
		}
		turn.Messages = append(turn.Messages, m)
		var metadata json.RawMessage // nil for none
		if record := recordOf(e.Record); record != nil {
			metadata = sdk.JSON(recordName, record[recordName])
		}
		turn.Metadata = append(turn.Metadata, metadata)
	}
	below, rest, err := t.recognizer().BelowCall(t.Context(), turn)
	if err != nil {
		return nil, err
	}
	turn.History = rest
	ask.MustFit = ask.MustFit && below == nil && !t.managed() // the branch's context fits
	return t.recognizer().Record(t.Context(), turn, recognize.Recording{
		Below:   below,
		Ask:     func(recognize.Match) reply.Request { return ask },
		Managed: t.managed(),
		Attempt: t.attempt,
		Keep:    files.Keep(t.Context(), t.Store()),
		Import:  t.Import,
	})
}

// sessionOf is the session in what Claude Code sends as metadata.user_id; "" for none.
func sessionOf(userID string) string {
	var named struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(userID), &named) == nil {
		return named.SessionID
	}
	_, id, _ := strings.Cut(userID, "_session_") // of versions before 2
	return id
}

// recordName is the member of a message's metadata that has its blocks.
const recordName = "anthropic"

// recordOf makes metadata of a record: {"anthropic": {"content": [blocks]}}. Of one that
// is too large, or that the database can't hold, they tell the size alone.
func recordOf(record json.RawMessage) map[string]json.RawMessage {
	const others = 8 << 10 // bytes of the other members
	if len(record) == 0 {
		return nil
	}
	whole := chat.AppendObject(nil, []chat.Member{{Name: "content", Value: record}})
	if len(record) > tree.MaxMetadataBytes-others || chat.CheckObject(whole, "record") != nil {
		whole = fmt.Appendf(nil, `{"left_out_bytes":%d}`, len(record))
	}
	return map[string]json.RawMessage{recordName: whole}
}

// blocksOf reads the record of a stored message; nil for none.
func blocksOf(m *tree.Message) (blocks []json.RawMessage) {
	var metadata struct {
		Anthropic struct{ Content []json.RawMessage }
	}
	if m != nil && json.Unmarshal(m.Metadata, &metadata) == nil {
		blocks = metadata.Anthropic.Content
	}
	return blocks
}

// prompt is the history as a model of chat completions reads it.
func (t turn) prompt() *reply.Prompt {
	messages := make([]*chat.Message, len(t.entries))
	for i, e := range t.entries {
		messages[i] = e.Message
	}
	return &reply.Prompt{Exact: true, Messages: t.Replies().Reasoned(t.request.Model, messages)}
}

// answerOf is a reply's answer on the wire, as far as end tells it.
func (t turn) answerOf(rep *reply.Reply, end reply.End) wire.Answer {
	a := wire.Answer{ID: "msg_" + strings.ReplaceAll(rep.MessageID().String(), "-", ""), Model: t.request.Model, FinishReason: end.FinishReason}
	if m := end.Message; m != nil {
		a.Message, a.Reasoning, a.Blocks = chat.Read(m.Body), m.Reasoning, blocksOf(m)
	}
	a.Usage = wire.Usage{Input: end.Usage.PromptTokens - end.Usage.CachedTokens, CacheRead: end.Usage.CachedTokens, Output: end.Usage.CompletionTokens}
	return a
}

// errStopped is the error of an answer that somebody stopped, for a client that can't
// be told so.
var errStopped = fault.New(fault.Unavailable, "reply_stopped", "", "The answer was stopped before its end. Send the request again.")

// follow writes the events of a reply: its pieces as they come, or all of it at the end.
func (t turn) follow(rep *reply.Reply, pieces bool) server.StreamForm {
	events := wire.NewStream(t.answerOf(rep, reply.End{}))
	return server.StreamForm{
		Begin: events.Begin,
		Event: func(dst []byte, e reply.Event) ([]byte, error) {
			switch {
			case e.Delta != nil && pieces:
				return events.Add(dst, sdk.Delta{Reasoning: e.Delta.Reasoning, Text: e.Delta.Content + e.Delta.Refusal, Calls: e.Delta.ToolCalls}), nil
			case e.End == nil:
				return dst, nil
			case e.End.Status == reply.StatusFailed && !e.End.SaidNothing():
				return broken(dst, server.ProblemOf(e.End.Err)), nil
			case e.End.Status == reply.StatusStopped:
				return broken(dst, server.ProblemOf(errStopped)), nil
			}
			return events.End(dst, t.answerOf(rep, *e.End)), nil
		},
		Closed: broken,
	}
}
