package tree

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Add inserts a summary node. Its anchor must be a message of the
// conversation, its cutoff the anchor or an ancestor of the anchor, and its body
// a user message. Anything else is a fault.Invalid. The cost grows with the
// messages between anchor and cutoff.
func (s *Summaries) Add(ctx context.Context, conversationID uuid.UUID, n NewSummary) (_ Summary, err error) {
	defer db.Wrap(&err, "tree.Summaries.Add(%s, anchor %s)", conversationID, n.AnchorID)
	d, err := s.store().summaryDraft(ctx, n)
	if err != nil {
		return Summary{}, err
	}
	var node db.Node
	err = s.store().inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		anchor, err := s.q.GetAnchor(ctx, db.GetAnchorParams{
			ConversationID: toUUID(conversationID), AnchorID: toUUID(n.AnchorID), CutoffID: toUUID(n.Range.LastSummarizedID),
		})
		if isNoRows(err) {
			return errCutoff
		}
		if err != nil {
			return err
		}
		row := db.InsertNodeParams(d.summaryRow(conversationID, parentStateOf(db.Node{
			ID: anchor.ID, Depth: anchor.Depth, PathTokens: anchor.PathTokens, PrefixID: anchor.PrefixID,
		}), n.Range))
		node = db.Node(row)
		if err := s.q.InsertNode(ctx, row); err != nil {
			return err
		}
		return s.note(ctx, Change{ConversationID: conversationID, Kind: SummaryCreated, MessageID: d.ID, ParentID: n.AnchorID})
	})
	if err != nil {
		return Summary{}, err
	}
	return fromSummary(node), nil
}

var errCutoff = fault.New(fault.Invalid, "invalid_cutoff", "last_summarized_id",
	"A summary's anchor must be a message of the conversation, and its cutoff that message or an ancestor of it.")

func (s *Store) summaryDraft(ctx context.Context, n NewSummary) (*draft, error) {
	d, err := s.draft(ctx, NewMessage{ID: n.ID, Message: &chat.Message{Raw: n.Body}, Metadata: n.Metadata, CreatedAt: n.CreatedAt})
	switch {
	case err != nil:
		return nil, err
	case d.Message.Role != RoleUser:
		return nil, fault.New(fault.Invalid, "invalid_role", "role", "A context shows a summary as a user message; this one's role is %s.", d.Message.Role)
	case n.Range.Model == "":
		return nil, fault.New(fault.Invalid, "missing_model", "model", "Say what wrote the summary.")
	}
	if n.Tokens > 0 {
		d.tokenCount = n.Tokens
	}
	return d, checkText(n.Range.Model, "model", maxModelBytes)
}

const maxModelBytes = 200

// summaryRow places a summary's draft under its anchor.
func (d *draft) summaryRow(conversationID uuid.UUID, anchor parentState, r SummaryRange) db.CopyNodesParams {
	return db.CopyNodesParams{
		ConversationID: toUUID(conversationID), ID: toUUID(d.ID), ParentID: toUUID(anchor.id),
		Kind: string(KindSummary), Role: string(RoleUser),
		Depth: int32(anchor.depth + 1), Tokens: int32(d.tokenCount), PathTokens: anchor.pathTokens + int64(d.tokenCount), PrefixID: toUUID(anchor.prefixID),
		CreatedAt: d.CreatedAt, Body: d.Message.Raw, Metadata: d.Metadata,
		LastSummarizedID: toUUID(r.LastSummarizedID), PriorSummaryID: toUUID(r.PriorSummaryID), KeptIds: toUUIDs(r.KeptIDs),
		Model: pgtype.Text{String: r.Model, Valid: true}, Origin: r.Origin.column(),
	}
}
