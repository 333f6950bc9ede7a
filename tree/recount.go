package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// recount counts the messages again that named an attachment before it was there,
// in the transaction that stored it. Only an import makes such messages, and a fork
// copies them. A fork that is under way holds its source, so what it commits
// is found in the next round.
func (s *Store) recount(ctx context.Context, hash []byte) error {
	for done := map[pgtype.UUID]bool{}; ; {
		all, err := s.q.ListNamingConversations(ctx, db.ListNamingConversationsParams{TenantID: s.tenant, Hash: hash})
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(id pgtype.UUID) bool { return done[id] })
		if len(all) == 0 {
			return nil
		}
		for _, id := range all {
			done[id] = true
			_, err := s.lock(ctx, uuid.UUID(id.Bytes))
			if err == nil {
				err = s.allowLongStatements(ctx, func() error { return s.recountIn(ctx, id, hash) })
			}
			if err != nil && !errors.Is(err, fault.NotFound) { // deleted meanwhile
				return err
			}
		}
	}
}

// recountIn counts the messages of a locked conversation that name an attachment.
func (s *Store) recountIn(ctx context.Context, conversationID pgtype.UUID, hash []byte) error {
	const atOnce = 20 // bodies in memory
	ids, err := s.q.ListNamingMessages(ctx, db.ListNamingMessagesParams{ConversationID: conversationID, Hash: hash})
	if err != nil {
		return err
	}
	params := db.RecountMessagesParams{ConversationID: conversationID}
	for some := range slices.Chunk(ids, atOnce) {
		rows, err := s.q.ListNodes(ctx, db.ListNodesParams{ConversationID: conversationID, Ids: some})
		if err != nil {
			return err
		}
		said := make([]*chat.Message, len(rows))
		var named [][sha256.Size]byte
		for i, row := range rows {
			said[i] = chat.Read(row.Body)
			named = appendHashes(named, said[i].Attachments())
		}
		there, err := s.Attachments().All(ctx, named...)
		if err != nil {
			return err
		}
		for i, row := range rows {
			cost, err := s.cost(ctx, said[i], there)
			if err != nil {
				return err
			}
			if more := int32(cost) - row.Tokens; more != 0 {
				params.Ids, params.More = append(params.Ids, row.ID), append(params.More, more)
			}
		}
	}
	if len(params.Ids) == 0 {
		return nil
	}
	return s.q.RecountMessages(ctx, params)
}
