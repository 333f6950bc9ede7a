package reply

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// lookEvery is how often the events of another server's reply are looked for, at
// least: with the time between two saves, a reader is less than a second behind.
const lookEvery = 200 * time.Millisecond

// A savedEvent is an event as it stands in the log of its reply. Messages are ids:
// they are on the branch.
type savedEvent struct {
	ID        int               `json:"id"`
	Started   *savedStart       `json:"started,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"`
	Content   string            `json:"content,omitempty"`
	Refusal   string            `json:"refusal,omitempty"`
	ToolCalls []json.RawMessage `json:"tool_calls,omitempty"`
	MessageID *uuid.UUID        `json:"message_id,omitempty"` // of a step
}

type savedStart struct {
	MessageIDs []uuid.UUID       `json:"message_ids,omitempty"`
	Context    summarize.Context `json:"context"`
	Compacted  *Compacted        `json:"compacted,omitempty"`
}

// encode gives events in the form in which they are saved.
func encode(events []Event) json.RawMessage {
	if len(events) == 0 {
		return nil
	}
	all := make([]savedEvent, len(events))
	for i, e := range events {
		all[i].ID = e.ID
		switch {
		case e.Started != nil:
			all[i].Started = &savedStart{Context: e.Started.Context, Compacted: e.Started.Compacted}
			for _, m := range e.Started.Messages {
				all[i].Started.MessageIDs = append(all[i].Started.MessageIDs, m.ID)
			}
		case e.Message != nil:
			all[i].MessageID = &e.Message.ID
		default:
			all[i].Reasoning, all[i].Content, all[i].Refusal, all[i].ToolCalls = e.Delta.Reasoning, e.Delta.Content, e.Delta.Refusal, e.Delta.ToolCalls
		}
	}
	raw, _ := chat.Marshal(all) // texts, ids, counts and JSON that was read
	return raw
}

// decode reads saved events after an id. Of a save that was made twice, the events
// stand there twice.
func decode(saves []tree.ReplyEvents, after int) (all []savedEvent, err error) {
	for _, save := range saves {
		var some []savedEvent
		if err := json.Unmarshal(save.Payload, &some); err != nil {
			return nil, err
		}
		for _, e := range some {
			if e.ID > after {
				after, all = e.ID, append(all, e)
			}
		}
	}
	return all, nil
}

// whole gives saved events as readers get them. Messages that were pruned are left
// out.
func (s *Service) whole(ctx context.Context, r tree.Reply, saved []savedEvent) (all []Event, err error) {
	for _, e := range saved {
		event := Event{ID: e.ID}
		switch {
		case e.Started != nil:
			event.Started = &Started{MessageID: r.MessageID, ParentID: r.ParentID, Model: r.Model, Context: e.Started.Context, Compacted: e.Started.Compacted}
			event.Started.Messages, err = s.store.Messages(ctx, r.ConversationID, e.Started.MessageIDs)
		case e.MessageID != nil:
			var m tree.Message
			if m, err = s.store.Message(ctx, r.ConversationID, *e.MessageID); errors.Is(err, fault.NotFound) {
				continue
			}
			event.Message = &m
		default:
			event.Delta = &Delta{Reasoning: e.Reasoning, Content: e.Content, Refusal: e.Refusal, ToolCalls: e.ToolCalls}
		}
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		all = append(all, event)
	}
	return all, nil
}

// look gives the events of a reply after one that are in the database and, where
// there is no other, its End.
func (s *Service) look(ctx context.Context, k key, after int) (events []Event, end *Event, err error) {
	row, saves, err := s.store.Replies().Log(ctx, k.conversation, k.messageID, after)
	if ignoreNotFound(err) != nil {
		return nil, nil, err
	}
	saved, err := decode(saves, after)
	if err == nil {
		events, err = s.whole(ctx, row, saved)
	}
	if len(events) > 0 || err != nil {
		return events, nil, err
	}
	if end, err := s.endOf(ctx, k, row); end != nil || err != nil {
		return nil, &Event{ID: endID(row), End: end}, err
	}
	return nil, nil, nil
}

// endID is the id of the End of a reply.
func endID(row tree.Reply) int {
	if row.EndEvent == 0 {
		return LastEventID
	}
	return row.EndEvent
}

// endOf tells how a reply ended whose row is the one given, or is not there any more.
// It gives nil of a reply that runs.
func (s *Service) endOf(ctx context.Context, k key, row tree.Reply) (*End, error) {
	if row.State == tree.StateRunning || row.State == tree.StateStopping {
		return nil, nil
	}
	m, err := s.store.Message(ctx, k.conversation, k.messageID)
	switch {
	case err == nil && m.Role == tree.RoleAssistant:
		end := EndOf(m)
		return &end, nil
	case ignoreNotFound(err) != nil:
		return nil, err
	case row.State == tree.StateEnded:
		end := endFrom(row.Metadata)
		end.HeadID = row.ParentID
		return &end, nil
	}
	return &End{Status: StatusFailed, Err: s.deleted(ctx, k)}, nil
}

// follow looks for events of a reply that another server runs, or ran, until there
// are some, or its End.
func (s *Service) follow(ctx context.Context, k key, after int) ([]Event, *Event, error) {
	ticker := time.NewTicker(min(s.cfg.SaveEvery/2, lookEvery))
	defer ticker.Stop()
	for good := time.Now(); ; {
		events, end, err := s.look(ctx, k, after)
		switch {
		case err == nil && (len(events) > 0 || end != nil):
			return events, end, nil
		case err == nil:
			good = time.Now()
		case ctx.Err() != nil || fault.Refused(err) || time.Since(good) > s.cfg.StoreTimeout:
			return nil, nil, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-s.closing.Done(): // the reply goes on, without its readers here
			return nil, nil, errClosed
		}
	}
}

// known gives the reply of an id that is in the database: it runs, or ended lately, or
// its answer is stored. It is nil where nothing is known of the id, and errTaken where
// another message has it.
func (s *Service) known(ctx context.Context, conversationID, messageID uuid.UUID) (*Reply, error) {
	k := s.key(conversationID, messageID)
	row, err := s.store.Replies().One(ctx, conversationID, messageID)
	if err == nil && row.State != tree.StateDeleted {
		r := &Reply{key: k, head: row.ParentID, model: row.Model, metadata: addedIn(row.Metadata), service: s, stopping: row.State == tree.StateStopping, endID: endID(row)}
		r.found, err = s.endOf(ctx, k, row)
		return r, err
	}
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	m, err := s.store.Message(ctx, conversationID, messageID)
	switch {
	case err != nil:
		return nil, ignoreNotFound(err)
	case m.Role != tree.RoleAssistant:
		return nil, errTaken
	}
	end := EndOf(m)
	return &Reply{key: k, head: end.HeadID, metadata: addedIn(m.Metadata), found: &end, endID: LastEventID}, nil
}

// members is an object of what a request adds to the metadata of its answer, byte for
// byte: signed blocks stand in it.
func members(added map[string]json.RawMessage) json.RawMessage {
	if len(added) == 0 {
		return nil
	}
	var all []chat.Member
	for _, name := range slices.Sorted(maps.Keys(added)) {
		all = append(all, chat.Member{Name: name, Value: added[name]})
	}
	return chat.AppendObject(nil, all)
}

// addedIn are the members that a request added to the metadata of its answer.
func addedIn(metadata json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(metadata, &all) // there may be none
	delete(all, "reply")
	return all
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
