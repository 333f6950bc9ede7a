package tree

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// WithPathHash gives a new root a path hash, so that FindPath finds the messages
// below it. A message below one that has a path hash always gets one.
func WithPathHash() AppendOption { return func(o *appendOptions) { o.hashed = true } }

// Append stores the history of a client that keeps no ids, as far as Recognize
// doesn't know it. It stores the rest as Append and AppendChain do, so a changed
// message begins a branch. It makes the conversation of in if there is none. The
// path that it returns ends in the last message of the history, and says how many
// were Known before. It has no Rest.
//
// The ids of the stored messages derive from the path, so two calls at the same
// time store each message once. An error's field begins with "messages[i]".
//
// A history that is stored already takes one round trip. Up to MaxChain new
// messages take one more.
func (s *Histories) Append(ctx context.Context, in NewConversation, h History) (p Path, err error) {
	defer db.Wrap(&err, "tree.Histories.Append(%s, %d messages)", in.ID, len(h.Messages))
	if len(h.Messages) == 0 {
		return p, fault.New(fault.Invalid, "empty_chain", "messages", "The path is empty. Send one message or more.")
	}
	const attempts = 5 // against others that append the same, or prune what was found
	for range attempts {
		if p, err = s.appendPath(ctx, in, h); !changedMeanwhile(err) {
			break
		}
	}
	return p, err
}

func changedMeanwhile(err error) bool {
	return errors.Is(err, fault.Conflict) || errors.Is(err, fault.NotFound) && fault.Of(err).Code == "parent_not_found"
}

func (s *Histories) appendPath(ctx context.Context, in NewConversation, h History) (Path, error) {
	p, err := s.Recognize(ctx, in.ID, h)
	if errors.Is(err, fault.NotFound) { // both the conversation and what is in it, or neither
		err = s.store().inTx(ctx, func(s *Store) error {
			if _, _, err := s.CreateConversation(ctx, in); err != nil {
				return err
			}
			p, err = s.appendRest(ctx, in.ID, p)
			return err
		})
		return p, err
	}
	if err != nil {
		return p, err
	}
	return s.store().appendRest(ctx, in.ID, p)
}

// appendRest stores what of a history isn't known.
func (s *Store) appendRest(ctx context.Context, conversationID uuid.UUID, p Path) (_ Path, err error) {
	done := p.Known
	for rest := p.Rest; len(rest) > 0; {
		chain := rest[:min(len(rest), MaxChain)]
		var last Message
		if len(chain) == 1 {
			stored, err := s.Append(ctx, conversationID, p.HeadID, chain[0], WithPathHash())
			if err != nil {
				return p, inPath(fault.At(err, "messages[0]"), done)
			}
			last = stored.Message
		} else {
			stored, err := s.AppendChain(ctx, conversationID, p.HeadID, chain, WithPathHash())
			if err != nil {
				return p, inPath(err, done)
			}
			last = stored.Messages[len(stored.Messages)-1]
		}
		p.Tokens += last.PathTokens - p.pathTokens
		p.HeadID, p.pathTokens = last.ID, last.PathTokens
		done, rest = done+len(chain), rest[len(chain):]
	}
	p.Rest = nil
	return p, nil
}

// After returns the messages behind the first ones of a history, as they are stored.
func (h History) After(known int) []NewMessage {
	rest := make([]NewMessage, len(h.Messages)-known)
	for i, m := range h.Messages[known:] {
		rest[i] = NewMessage{Message: m}
		if m.Other("reasoning_content") == nil && m.Other("reasoning") == nil { // which the body may have
			rest[i].Reasoning = m.Reasoning
		}
		if h.Metadata != nil {
			rest[i].Metadata = h.Metadata[known+i]
		}
	}
	return rest
}

// onPath makes messages of what follows a path in a history. Their ids derive from
// the path.
func (s *Histories) onPath(ctx context.Context, conversationID uuid.UUID, h History, p Path) (rest []NewMessage, err error) {
	above := p.hash
	rest = h.After(p.Known)
	for i := range rest {
		above = above.Child(rest[i].Message)
		rest[i].derived = true
		if rest[i].ID, err = s.store().DeriveID(ctx, "path", conversationID.String()+hex.EncodeToString(above[:])); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// inPath moves the field of an error of a chain to where the path has it.
func inPath(err error, before int) error {
	e := *fault.Of(err)
	var i int
	if n, _ := fmt.Sscanf(e.Field, "messages[%d]", &i); n != 1 || !fault.Refused(err) {
		return err
	}
	_, member, _ := strings.Cut(e.Field, "]")
	e.Field = fmt.Sprintf("messages[%d]%s", before+i, member)
	return &e
}

// ChangeMetadata replaces a message's metadata with the result of change.
// change gets the present metadata, which may be nil. Nothing else of a message
// ever changes.
func (s *Store) ChangeMetadata(ctx context.Context, conversationID, id uuid.UUID, change func(json.RawMessage) json.RawMessage) (err error) {
	defer db.Wrap(&err, "tree.ChangeMetadata(%s, %s)", conversationID, id)
	return s.inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		m, err := s.Message(ctx, conversationID, id)
		if err != nil {
			return err
		}
		metadata, err := checkExtra(change(m.Metadata), "metadata")
		if err != nil {
			return err
		}
		return s.q.SetMetadata(ctx, db.SetMetadataParams{ConversationID: toUUID(conversationID), ID: toUUID(id), Metadata: metadata})
	})
}
