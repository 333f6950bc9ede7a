package openai

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// maxCompactInstructions is how long instructions may be to be the summarizer's,
// too: what is longer tells how to answer, and not how to summarize.
const maxCompactInstructions = 4000

// compactResponse answers with what takes the place of a branch or of a history.
// Of a branch that is stored, a summary is saved that folds all of it. A history
// that is not stored stays so: the item has its text.
func compactResponse(r *server.Request) (server.Answer, error) {
	req, _, err := read(r, wire.ParseCompact)
	if err != nil {
		return nil, err
	}
	c, err := compactAll(r, req)
	if err != nil {
		return nil, err
	}
	return tell(sdk.JSON("id", c.Summary.ResponseID(), "object", "response.compaction", "created_at", time.Now().Unix(), "output", append(slices.Clip(c.kept), c.Item()), "usage", c.usage), c.node()), nil
}

// triggered answers a request for a response whose input ends with a compaction_trigger:
// the response has the compaction item, and no answer of a model's.
func triggered(r *server.Request, req *wire.Request) (server.Answer, error) {
	c, err := compactAll(r, req)
	if err != nil {
		return nil, inParameter(err, "input")
	}
	turn := wire.Turn{Node: c.Summary, CreatedAt: time.Now(), Echo: req.Echo, Compaction: &c.Compaction}
	end := wire.End{Status: wire.Completed, At: time.Now(), Usage: c.usage}
	if req.Stream {
		s := wire.NewStream(turn, -1)
		return server.Told{Answer: server.Whole("text/event-stream", s.End(s.Begin(nil), end)), ConversationID: c.node().Conversation, HeadID: c.Head}, nil
	}
	return tell(turn.Ended(end), c.node()), nil
}

// A compaction is what takes the place of a branch or of a history.
type compaction struct {
	wire.Compaction
	kept  []wire.Item // that stay verbatim
	usage *wire.Usage
}

// node is the head of the branch whose summary was saved; the zero NodeID for none.
func (c compaction) node() wire.NodeID {
	if c.Head == uuid.Nil {
		return wire.NodeID{}
	}
	return wire.NodeID{Conversation: c.Summary.Conversation, Node: c.Head}
}

// compactAll makes what takes the place of the branch and the input that a request names.
func compactAll(r *server.Request, req *wire.Request) (c compaction, err error) {
	demand := summarize.Demand{All: true}
	if len(req.Instructions) <= maxCompactInstructions {
		demand.Instructions = req.Instructions
	}
	at, added, err := place(r, req, req.Input.Entries, true)
	if err != nil {
		return c, err
	}
	if at != nil && at.ID == uuid.Nil { // the conversation has no message
		if at = nil; len(added.Messages) == 0 {
			return c, noItem()
		}
	}
	if at != nil {
		end, known, err := service(r).Follow(r.Context(), at.ConversationID, at.ID, added.Messages)
		if err != nil {
			return c, err
		}
		if at.ID, added.Messages = end, added.Messages[known:]; len(added.Messages) == 0 {
			return compactBranch(r, *at, demand)
		}
	}
	return compactHistory(r, at, added.Messages, demand)
}

// compactBranch saves a summary of a branch up to its head.
func compactBranch(r *server.Request, head recognize.Message, demand summarize.Demand) (compaction, error) {
	open, err := r.Store().Histories().OpenCalls(r.Context(), head.ConversationID, head.ID)
	if err == nil && len(open) > 0 {
		err = wire.NoOutput(open[0])
	}
	if err != nil {
		return compaction{}, err
	}
	k, err := r.Contexts().Compact(r.Context(), head.ConversationID, head.ID, summarize.TriggerRequest, &demand)
	if err != nil {
		return compaction{}, err
	}
	c, err := r.Contexts().Context(r.Context(), head.ConversationID, head.ID, summarize.Window{})
	if err != nil {
		return compaction{}, err
	}
	if !c.FoldsHead() { // compaction is off for this conversation, or nobody could write a summary
		return compactHistory(r, &head, nil, demand)
	}
	kept, err := r.Store().Messages(r.Context(), head.ConversationID, c.Summary.KeptIDs)
	if err != nil {
		return compaction{}, err
	}
	var items []wire.Item
	show := showing{r: r}
	for _, m := range kept {
		if m.Role == tree.RoleUser {
			if m, err = show.message(m); err != nil {
				return compaction{}, err
			}
			items = append(items, wire.ItemsOf(nodeOf(m), chat.Read(m.Body), wire.Note{})...)
		}
	}
	return compaction{wire.Compaction{
		Summary: wire.NodeID{Conversation: head.ConversationID, Node: c.Summary.ID}, Head: head.ID, Text: chat.Read(c.Messages[c.Counts.Prefix]).Text(),
	}, items, &wire.Usage{Input: k.PromptTokens, Output: k.CompletionTokens, Reasoning: k.ReasoningTokens()}}, nil
}

// compactHistory summarizes a history, of which a branch may be the beginning, and
// stores nothing.
func compactHistory(r *server.Request, at *recognize.Message, added []*chat.Message, demand summarize.Demand) (compaction, error) {
	var history []json.RawMessage
	if at != nil {
		c, err := contextOf(r, *at, true)
		if err == nil && !c.Complete {
			err = inParameter(reply.TooLong(c.Whole()-c.Usage.ContextTokens), "input")
		}
		if err != nil {
			return compaction{}, err
		}
		history = slices.Clip(c.Messages)
	}
	history = append(history, raw(added)...)
	messages := make([]*chat.Message, len(history))
	for i, raw := range history {
		messages[i] = chat.Read(raw)
	}
	if err := wire.CheckCalls(nil, messages); err != nil {
		return compaction{}, err
	}
	if last := messages[len(messages)-1]; len(last.Calls) > 0 {
		return compaction{}, wire.NoOutput(last.Calls[0].ID)
	}
	f, err := r.Contexts().Fold(r.Context(), history, summarize.Window{}, demand)
	if err == nil && f.Summary == nil {
		err = fault.New(fault.Invalid, reader.CodeValue, "input", "There is nothing to compact: the input has instructions alone.")
	}
	if err != nil {
		return compaction{}, err
	}
	var items []wire.Item
	for _, m := range added {
		if m.Role == chat.User {
			items = append(items, wire.ItemsOf(wire.NodeID{Node: uuid.Must(uuid.NewV7())}, m, wire.Note{})...)
		}
	}
	summary := wire.Compaction{Summary: wire.NodeID{Node: uuid.Must(uuid.NewV7())}, Text: chat.Read(f.Summary).Text()}
	return compaction{summary, items, &wire.Usage{Input: f.PromptTokens, Output: f.CompletionTokens, Reasoning: f.ReasoningTokens}}, nil
}

// compactedFor gives the summary that was made for the answer to head in a
// conversation; nil for none, and where the summary was deleted since: its text is
// gone, too.
func compactedFor(r *server.Request, conversation uuid.UUID, c *reply.Compacted, head uuid.UUID) (*wire.Compaction, error) {
	if c == nil {
		return nil, nil
	}
	body := c.Message
	if conversation != uuid.Nil { // what is kept of an answer mustn't outlast the summary
		_, message, err := r.Contexts().SummaryMessage(r.Context(), conversation, c.SummaryID)
		if errors.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		body = message
	}
	return &wire.Compaction{Summary: wire.NodeID{Conversation: conversation, Node: c.SummaryID}, Head: head, Text: chat.Read(body).Text()}, nil
}

// compactedAt gives the message at which a branch goes on after a compaction item:
// nil where the summary is gone, or was never on a branch of this tenant's.
func compactedAt(r *server.Request, c wire.Compaction) (*recognize.Message, error) {
	if c.Summary.Conversation == uuid.Nil {
		return nil, nil
	}
	s, err := r.Store().Summaries().One(r.Context(), c.Summary.Conversation, c.Summary.Node)
	if err == nil {
		if c.Head == uuid.Nil {
			c.Head = s.AnchorID
		}
		if _, err = r.Store().Message(r.Context(), c.Summary.Conversation, c.Head); err == nil {
			return &recognize.Message{ConversationID: c.Summary.Conversation, ID: c.Head}, nil
		}
	}
	if errors.Is(err, fault.NotFound) {
		err = nil
	}
	return nil, err
}

// compactedText is the message by which a model reads what a compaction item
// stands for.
func compactedText(r *server.Request, e wire.Entry) (*chat.Message, error) {
	if e.Compaction.Text != "" {
		return e.Compaction.Message(), nil
	}
	_, message, err := r.Contexts().SummaryMessage(r.Context(), e.Node.Conversation, e.Node.Node)
	if errors.Is(err, fault.NotFound) {
		err = noEntry(e)
	}
	return chat.Read(message), err
}
