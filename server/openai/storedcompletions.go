package openai

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// The answers that chat completions recorded, as OpenAI's "stored chat
// completions".

// ItemID returns the id of the completion.
func (c Completion) ItemID() string { return c.ID }

// completionNode reads the answer that a completion is. Any other message is no
// completion.
func completionNode(r *server.Request) (NodeID, tree.Message, error) {
	id := r.Value("completion_id")
	n, err := ParseCompletionID(id)
	if err != nil {
		return n, tree.Message{}, err
	}
	m, err := r.Store().Message(r.Context(), n.Conversation, n.Node)
	if errors.Is(err, fault.NotFound) || err == nil && !isCompletion(m) {
		err = NoCompletion(id)
	}
	return n, m, err
}

// isCompletion tells whether an answer is a completion. One that failed is none.
func isCompletion(m tree.Message) bool {
	return storedMetadataOf(m.Metadata).Completion != "" && reply.EndOf(m).Status != reply.StatusFailed
}

// completionOf is the completion that a stored answer is.
func completionOf(m tree.Message) Completion {
	t := Turn{Node: NodeID{m.ConversationID, m.ID}, CreatedAt: m.CreatedAt, Echo: newEcho(modelOf(&m))}
	if id := m.ID; id.Version() == 7 {
		t.CreatedAt = time.Unix(id.Time().UnixTime())
	}
	if note := storedMetadataOf(m.Metadata); note.Echo != nil {
		t.Echo = *note.Echo
	}
	return t.Completion(endOf(reply.EndOf(m)))
}

func getCompletion(r *server.Request) (server.Answer, error) {
	n, m, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	return answer{marshal(completionOf(m)), &n}, nil
}

// updateCompletion replaces the metadata of a completion.
func updateCompletion(r *server.Request) (server.Answer, error) {
	body, err := r.ReadJSON()
	if err != nil {
		return nil, err
	}
	change, err := ParseConversationUpdate(body) // which has the same one member
	if err != nil {
		return nil, err
	}
	n, m, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	err = r.Store().ChangeMetadata(r.Context(), n.Conversation, n.Node, func(stored json.RawMessage) json.RawMessage {
		note := storedMetadataOf(stored)
		if note.Echo == nil {
			e := newEcho(modelOf(&m))
			note.Echo = &e
		}
		note.Echo.Metadata = change.Metadata
		m.Metadata = withNote(stored, note)
		return m.Metadata
	})
	if err != nil {
		return nil, err
	}
	return answer{marshal(completionOf(m)), &n}, nil
}

// withNote is a message's metadata with another note.
func withNote(metadata json.RawMessage, note storedMetadata) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(metadata, &members) // nothing, or an object
	members["openai"] = marshal(note)
	return marshal(members)
}

// deleteCompletion takes a completion out of the list. Where nothing follows it,
// it goes from the tree, too, with the messages above it that lead to nothing
// else; one that was continued stays in the branches that go on from it.
func deleteCompletion(r *server.Request) (server.Answer, error) {
	n, _, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	pruned, err := r.Store().PruneEnd(r.Context(), n.Conversation, n.Node, func(m tree.Message) bool { return tree.Brought(m) || reply.IsStep(m) })
	if err == nil && !pruned {
		err = r.Store().ChangeMetadata(r.Context(), n.Conversation, n.Node, func(stored json.RawMessage) json.RawMessage {
			note := storedMetadataOf(stored)
			note.Completion = ""
			return withNote(stored, note)
		})
	}
	if err != nil && !errors.Is(err, fault.NotFound) { // another request deleted it meanwhile
		return nil, err
	}
	return answer{body: marshal(DeletedCompletion(n))}, nil
}

// listCompletions lists a tenant's completions. Those of one conversation stand
// beside each other.
func listCompletions(r *server.Request) (server.Answer, error) {
	query := r.URL.Query()
	if !query.Has("order") {
		query.Set("order", "asc")
	}
	p, err := ParsePage(query)
	if err != nil {
		return nil, err
	}
	model, pairs := query.Get("model"), map[string]string{}
	for name, values := range query {
		if key, found := strings.CutPrefix(name, "metadata["); found && strings.HasSuffix(key, "]") {
			pairs[strings.TrimSuffix(key, "]")] = values[0]
		}
	}
	var after tree.Message
	if p.After != "" {
		n, err := ParseCompletionID(p.After)
		if err == nil {
			after, err = r.Store().Message(r.Context(), n.Conversation, n.Node)
		}
		if errors.Is(err, fault.NotFound) {
			return nil, fault.New(fault.Invalid, codeValue, "after", "The list has no completion with id '%s'.", clipID(p.After))
		}
		if err != nil {
			return nil, err
		}
		p.After = "" // cut begins where the tree does
	}
	list, err := cut(p, completions(r, after, !p.Ascending, func(c Completion) bool {
		if model != "" && c.Model != model {
			return false
		}
		for key, value := range pairs {
			if got, ok := c.Metadata[key]; !ok || got != value {
				return false
			}
		}
		return true
	}), func(c listedCompletion) int { return c.bytes })
	if err != nil {
		return nil, err
	}
	return answer{body: marshal(list)}, nil
}

// A listedCompletion is a completion, and how many bytes of a page it takes.
type listedCompletion struct {
	Completion
	bytes int
}

// completions gives the completions after a message, in order.
func completions(r *server.Request, after tree.Message, descending bool, wanted func(Completion) bool) iter.Seq2[listedCompletion, error] {
	const atOnce = 100
	return func(yield func(listedCompletion, error) bool) {
		for {
			page, more, err := r.Store().RecognizedAnswers(r.Context(), after, descending, atOnce)
			if err != nil {
				yield(listedCompletion{}, err)
				return
			}
			for _, m := range page {
				if !isCompletion(m) {
					continue
				}
				if c := completionOf(m); wanted(c) && !yield(listedCompletion{c, len(m.Body)}, nil) {
					return
				}
			}
			if !more {
				return
			}
			after = page[len(page)-1]
		}
	}
}

// A completionMessage is a message that a completion answered.
type completionMessage struct {
	id string
	of tree.Message
}

// ItemID returns the id of the message.
func (m completionMessage) ItemID() string { return m.id }

// MarshalJSON returns the message as it came, with its id.
func (m completionMessage) MarshalJSON() ([]byte, error) {
	members := []chat.Member{{Name: "id", Value: marshal(m.id)}}
	return chat.AppendObject(nil, append(members, chat.Members(m.of.Body)...)), nil
}

// listCompletionMessages lists the messages that a completion answered.
func listCompletionMessages(r *server.Request) (server.Answer, error) {
	query := r.URL.Query()
	if !query.Has("order") {
		query.Set("order", "asc")
	}
	p, err := ParsePage(query)
	if err != nil {
		return nil, err
	}
	n, m, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	list, err := branchPage(r, tree.Conversation{ID: n.Conversation, HeadID: m.ParentID}, p, func(m tree.Message) []Item {
		return []Item{completionMessage{NodeID{m.ConversationID, m.ID}.item(KindMessage, ordinalSaid), m}}
	})
	if err != nil {
		return nil, err
	}
	return answer{marshal(list), &n}, nil
}
