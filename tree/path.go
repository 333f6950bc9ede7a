package tree

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// WithPathHash gives a new root a path hash, so that FindPath finds the messages
// below it. A message below one that has a path hash always gets one.
func WithPathHash() AppendOption { return func(o *appendOptions) { o.hashed = true } }

// A Path is a stored path from a root to a head.
type Path struct {
	HeadID uuid.UUID
	Tokens int64 // of all its messages
	Known  int   // its first so many messages were there
}

// AppendPath stores a whole path, root first, of a client that keeps no ids. It
// finds the longest beginning of the path that is stored already, by what the
// messages mean (chat.PathHash). It stores the rest as Append and AppendChain
// do, so a changed message begins a branch. It finds only paths whose root has
// a path hash, together with everything that was appended below their messages.
// It makes the conversation of in if there is none.
//
// The ids of the stored messages derive from the path, so two calls at the same
// time store each message once. An error's field begins with "messages[i]".
//
// A path that is stored already takes one round trip. Up to MaxChain new
// messages take one more.
func (s *Store) AppendPath(ctx context.Context, in NewConversation, path []*chat.Message, opts ...AppendOption) (p Path, err error) {
	defer db.Wrap(&err, "tree.AppendPath(%s, %d messages)", in.ID, len(path))
	if len(path) == 0 {
		return p, fault.New(fault.Invalid, "empty_chain", "messages", "The path is empty. Send one message or more.")
	}
	hashes := HashPath(path)
	const attempts = 5 // against others that append the same, or prune what was found
	for range attempts {
		if p, err = s.appendPath(ctx, in, path, hashes, opts); !changedMeanwhile(err) {
			break
		}
	}
	return p, err
}

func changedMeanwhile(err error) bool {
	return errors.Is(err, fault.Conflict) || errors.Is(err, fault.NotFound) && fault.Of(err).Code == "parent_not_found"
}

// HashPath returns the path hash of each message of a path, root first.
func HashPath(path []*chat.Message) []chat.PathHash {
	hashes := make([]chat.PathHash, len(path))
	var above chat.PathHash
	for i, m := range path {
		above = above.Child(m)
		hashes[i] = above
	}
	return hashes
}

func (s *Store) appendPath(ctx context.Context, in NewConversation, path []*chat.Message, hashes []chat.PathHash, opts []AppendOption) (Path, error) {
	p, err := s.FindPath(ctx, in.ID, hashes)
	if errors.Is(err, fault.NotFound) { // both the conversation and what is in it, or neither
		err = s.inTx(ctx, func(s *Store) error {
			if _, _, err := s.CreateConversation(ctx, in); err != nil {
				return err
			}
			p, err = s.appendRest(ctx, in.ID, path, hashes, Path{}, opts)
			return err
		})
		return p, err
	}
	if err != nil {
		return p, err
	}
	return s.appendRest(ctx, in.ID, path, hashes, p, opts)
}

// appendRest stores what of a path isn't known.
func (s *Store) appendRest(ctx context.Context, conversationID uuid.UUID, path []*chat.Message, hashes []chat.PathHash, p Path, opts []AppendOption) (_ Path, err error) {
	opts = append(opts[:len(opts):len(opts)], WithPathHash())
	for done := p.Known; done < len(path); {
		end := min(len(path), done+MaxChain)
		chain, err := s.onPath(ctx, conversationID, path[done:end], hashes[done:end])
		if err != nil {
			return p, err
		}
		var last Message
		if len(chain) == 1 {
			stored, err := s.Append(ctx, conversationID, p.HeadID, chain[0], opts...)
			if err != nil {
				return p, inPath(fault.At(err, "messages[0]"), done)
			}
			last = stored.Message
		} else {
			stored, err := s.AppendChain(ctx, conversationID, p.HeadID, chain, opts...)
			if err != nil {
				return p, inPath(err, done)
			}
			last = stored.Messages[len(stored.Messages)-1]
		}
		p.HeadID, p.Tokens = last.ID, last.PathTokens
		done += len(chain)
	}
	return p, nil
}

// onPath makes messages of a part of a path. Their ids derive from the path.
func (s *Store) onPath(ctx context.Context, conversationID uuid.UUID, path []*chat.Message, hashes []chat.PathHash) (chain []NewMessage, err error) {
	chain = make([]NewMessage, len(path))
	for i, m := range path {
		chain[i].Message, chain[i].derived = m, true
		if chain[i].ID, err = s.DeriveID(ctx, "path", conversationID.String()+hex.EncodeToString(hashes[i][:])); err != nil {
			return nil, err
		}
	}
	return chain, nil
}

// FindRest finds the beginning of a path that is stored already, as AppendPath
// does, and returns the rest of the path as the messages that AppendPath would
// store below it. It is one query.
func (s *Store) FindRest(ctx context.Context, conversationID uuid.UUID, path []*chat.Message) (p Path, rest []NewMessage, err error) {
	hashes := HashPath(path)
	if p, err = s.FindPath(ctx, conversationID, hashes); err != nil {
		return p, nil, err
	}
	rest, err = s.onPath(ctx, conversationID, path[p.Known:], hashes[p.Known:])
	return p, rest, err
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

// FindPath returns the deepest message that a chain of path hashes leads to,
// root first. If there is none, Known is 0. It is one query, which looks hashes
// up from the last one back until one is stored.
func (s *Store) FindPath(ctx context.Context, conversationID uuid.UUID, hashes []chat.PathHash) (p Path, err error) {
	defer db.Wrap(&err, "tree.FindPath(%s, %d hashes)", conversationID, len(hashes))
	raw := make([][]byte, len(hashes))
	for i := range hashes {
		raw[i] = hashes[i][:]
	}
	row, err := s.q.FindPath(ctx, db.FindPathParams{Hashes: raw, ConversationID: toUUID(conversationID), TenantID: s.tenant})
	if err != nil {
		return p, orMissing(err, errConversationNotFound)
	}
	return Path{HeadID: uuid.UUID(row.ID.Bytes), Tokens: row.PathTokens, Known: int(row.Position)}, nil
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
