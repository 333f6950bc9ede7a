package search

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// stepMessages is how many messages of a conversation are indexed together.
const stepMessages = 64 * chunkMessages

// Follow brings the index of words up to the newest changes of conversations, and
// moves the places of tree.SearchFollower. Messages that were appended go into a
// chunk of their own, and with the last chunk of their conversation where that has
// no more messages: so each message is written again six times at most until its
// chunk has 64.
//
// store is for no tenant in particular.
func (s *Service) Follow(ctx context.Context, store *tree.Store, behind []tree.Pending) (err error) {
	defer fault.Wrap(&err, "search.Follow(%d conversations)", len(behind))
	tenants := map[string]bool{}
	m := newMaker()
	for _, p := range behind {
		n, err := m.follow(ctx, store.ForTenant(p.TenantID), p)
		if err != nil {
			return err
		}
		tenants[p.TenantID] = true
		s.indexed(ctx, n)
	}
	for tenant := range tenants {
		if _, err := addSegments(ctx, store.ForTenant(tenant), segmentChunks, largeParts); err != nil {
			return err
		}
	}
	return nil
}

// addSegments names the tenant's chunks by segments, until few are named by none, and few
// segments are small.
func addSegments(ctx context.Context, store *tree.Store, chunks, parts int) (added int, err error) {
	for ; ; added++ {
		more, err := store.Index().AddSegment(ctx, chunks, smallSegment)
		if err != nil || !more {
			return added, err
		}
		if _, err := store.Index().MergeSegments(ctx, parts, segmentChunks, largeSegment); err != nil {
			return added, err
		}
	}
}

// progress is after how many indexed messages the log tells of it.
const progress = 50_000

func (s *Service) indexed(ctx context.Context, messages int) {
	all := s.messages.Add(int64(messages))
	if all/progress > (all-int64(messages))/progress {
		s.log.InfoContext(ctx, "messages were indexed for searches since the start", "messages", all)
	}
}

// CatchUp does the work of Follow for all that the tenant's conversations are
// behind. It serves programs that run without a server.
func (s *Service) CatchUp(ctx context.Context, store *tree.Store) error {
	for {
		behind, err := store.Feed().Unfollowed(ctx, tree.SearchFollower, nil, time.Time{}, 200)
		if err != nil || len(behind) == 0 {
			return err
		}
		if err := s.Follow(ctx, store, behind); err != nil {
			return err
		}
	}
}

// A maker makes chunks.
type maker struct{ stems *stemmer }

func newMaker() *maker { return &maker{newStemmer()} }

// follow indexes what came to a conversation, and returns how many messages it read.
func (m *maker) follow(ctx context.Context, store *tree.Store, p tree.Pending) (messages int, err error) {
	for {
		ids, titled, err := store.Index().Unchunked(ctx, p)
		if err != nil {
			return messages, err
		}
		var title []string
		if titled {
			if title, err = titleWords(ctx, store, p.ConversationID); err != nil {
				return messages, err
			}
		}
		open, next, err := store.Index().OpenChunks(ctx, p.ConversationID, chunkMessages)
		if err != nil {
			return messages, err
		}
		to := p.Sequence
		if len(ids) > stepMessages {
			// A place before all changes: the next step asks for what is in no chunk.
			ids, to = ids[:stepMessages], min(p.Place, 0)-1
		}
		came, err := m.make(ctx, store, p.ConversationID, ids)
		if err != nil {
			return messages, err
		}
		messages += len(ids)
		var replaced []int32
		var saved []tree.Chunk
		put := func(number int, c made) {
			if len(c.ids) > 0 {
				saved = append(saved, tree.Chunk{ConversationID: p.ConversationID, Number: number, Messages: c.ids, NewestAt: c.newestAt(), Data: c.encode()})
			}
		}
		for _, c := range slices.Backward(open) {
			joins := len(came) > 0 && c.Number+len(c.Messages) == next && len(c.Messages) <= len(came[0].ids) && len(c.Messages)+len(came[0].ids) <= chunkMessages
			if !joins && c.Data != nil {
				continue
			}
			known, err := m.read(ctx, store, c)
			if err != nil {
				return messages, err
			}
			replaced = append(replaced, int32(c.Number))
			if !joins {
				put(c.Number, known)
				continue
			}
			known.join(came[0].chunk)
			known.ids = append(known.ids, came[0].ids...)
			came[0], next = known, c.Number
		}
		for _, c := range came {
			put(next, c)
			next += len(c.ids)
		}
		done, err := store.Index().SaveChunks(ctx, p, to, replaced, saved, title)
		if err != nil || !done || to == p.Sequence {
			return messages, err // what wasn't done comes again
		}
		p.Place = to
	}
}

// made is a chunk with the ids of its messages.
type made struct {
	*chunk
	ids []uuid.UUID
}

func (m made) newestAt() time.Time {
	newest := m.at[0]
	for _, at := range m.at {
		newest = max(newest, at)
	}
	return time.UnixMicro(newest).UTC()
}

// read gives what a stored chunk knows, and reads its messages again where it
// doesn't know it.
func (m *maker) read(ctx context.Context, store *tree.Store, row tree.Chunk) (made, error) {
	if c, err := decodeChunk(row.Data, len(row.Messages)); err == nil {
		return made{c, row.Messages}, nil
	}
	again, err := m.make(ctx, store, row.ConversationID, row.Messages)
	if err != nil || len(again) == 0 {
		return made{chunk: &chunk{}}, err
	}
	return again[0], nil
}

// make makes chunks of messages, each but the last one full. It leaves out those
// that are gone.
func (m *maker) make(ctx context.Context, store *tree.Store, conversationID uuid.UUID, ids []uuid.UUID) (all []made, err error) {
	for len(ids) > 0 {
		var texts []tree.MessageText
		var messages []*chat.Message
		bytes := 0
		err := store.Index().Texts(ctx, conversationID, ids[:min(makeTogether, len(ids))], func(t tree.MessageText) error {
			if bytes += len(t.Body); bytes <= makeBytes || len(texts) == 0 {
				texts, messages = append(texts, t), append(messages, chat.Read(t.Body))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if bytes > makeBytes { // the others are read again
			ids = ids[slices.Index(ids, texts[len(texts)-1].ID)+1:]
		} else {
			ids = ids[min(makeTogether, len(ids)):]
		}
		files, err := filesOf(ctx, store, messages...)
		if err != nil {
			return nil, err
		}
		for i, t := range texts {
			if len(all) == 0 || len(all[len(all)-1].ids) == chunkMessages {
				all = append(all, made{chunk: &chunk{}})
			}
			words := wordsOf(files.recalled(messages[i]))
			last := &all[len(all)-1]
			last.ids = append(last.ids, t.ID)
			last.add(t.CreatedAt, m.stems.indexed(words))
		}
	}
	return all, nil
}

// Messages that a maker reads together: so many, and about so many bytes.
const (
	makeTogether = 256
	makeBytes    = 8 << 20
)
