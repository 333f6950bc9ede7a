package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Outcome says how a compaction ended.
type Outcome string

const (
	OutcomeSaved       Outcome = "saved"
	OutcomeNothingToDo Outcome = "nothing_to_do" // below the trigger, or nothing worth folding
	OutcomeNoGain      Outcome = "no_gain"       // the summary was no smaller than what it would replace
	OutcomeSuperseded  Outcome = "superseded"    // another summary landed first
	OutcomeStale       Outcome = "stale"         // the anchor or the cutoff was pruned meanwhile
	OutcomeFailed      Outcome = "failed"        // no summarizer gave a summary
)

// A Compaction is the record of a compaction that ran, with any outcome.
type Compaction struct {
	ConversationID   uuid.UUID       `json:"conversation_id"`
	ID               uuid.UUID       `json:"id"`
	HeadID           uuid.UUID       `json:"head_id"`   // branch that was compacted
	AnchorID         uuid.UUID       `json:"anchor_id"` // of the plan; uuid.Nil where there was none
	CutoffID         uuid.UUID       `json:"cutoff_id"`
	SummaryID        uuid.UUID       `json:"summary_id"`       // node that was saved; uuid.Nil for other outcomes
	PriorSummaryID   uuid.UUID       `json:"prior_summary_id"` // summary that was to be merged; uuid.Nil for none
	RemadeID         uuid.UUID       `json:"remade_id"`        // summary that was to be made again; uuid.Nil where messages were folded for the first time
	Trigger          string          `json:"trigger"`          // append, reply or request; healing in records of earlier versions
	Outcome          Outcome         `json:"outcome"`
	Reason           string          `json:"reason"` // why that outcome, for people
	Model            string          `json:"model"`  // what wrote the summary
	Instructions     string          `json:"instructions"`
	Settings         json.RawMessage `json:"settings"`
	Attempts         json.RawMessage `json:"attempts"`
	MessagesBefore   int             `json:"messages_before"` // in the context
	MessagesAfter    int             `json:"messages_after"`
	TokensBefore     int             `json:"tokens_before"`
	TokensAfter      int             `json:"tokens_after"`
	FoldedMessages   int             `json:"folded_messages"` // newly folded
	FoldedTokens     int             `json:"folded_tokens"`
	PromptTokens     int             `json:"prompt_tokens"` // that all attempts cost
	CompletionTokens int             `json:"completion_tokens"`
	Duration         time.Duration   `json:"-"`
	CreatedAt        time.Time       `json:"created_at"`
}

// ReasoningTokens returns the part of CompletionTokens that was reasoning, as far
// as the providers said.
func (k Compaction) ReasoningTokens() (sum int) {
	var attempts []struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	}
	_ = json.Unmarshal(k.Attempts, &attempts) // absent where there are none
	for _, a := range attempts {
		sum += a.ReasoningTokens
	}
	return sum
}

// Record stores the record of a compaction in one transaction, together
// with its summary if n is not nil.
//
// The summary lands by compare-and-swap. Its anchor and cutoff must still be
// there, and the message n.ReadID in the version n.ReadVersion: the same messages
// imported again are others. The summary that applies at the anchor must still be
// n.Over. Without n.Over it must be the one that it merged, k.PriorSummaryID.
// Otherwise the outcome becomes OutcomeStale or
// OutcomeSuperseded, and no node is made. So a late result never hides a newer
// one. Record returns the record as it was stored.
//
// The cost grows with the messages between the anchor and the prior summary's
// anchor.
func (s *Summaries) Record(ctx context.Context, k Compaction, n *NewSummary) (_ Compaction, err error) {
	defer db.Wrap(&err, "tree.Summaries.Record(%s, %s)", k.ConversationID, k.ID)
	err = s.store().inTurn(ctx, k.ConversationID, func(s *Store) error {
		if _, err := s.lock(ctx, k.ConversationID); err != nil {
			return err
		}
		if n != nil {
			if err := s.land(ctx, &k, *n); err != nil {
				return err
			}
		}
		if k.Outcome != OutcomeSaved {
			k.MessagesAfter, k.TokensAfter = k.MessagesBefore, k.TokensBefore
		}
		k.CreatedAt = now()
		return s.q.InsertCompaction(ctx, db.InsertCompactionParams{
			ConversationID: toUUID(k.ConversationID), ID: toUUID(k.ID), HeadID: toUUID(k.HeadID), AnchorID: toUUID(k.AnchorID),
			CutoffID: toUUID(k.CutoffID), SummaryID: toUUID(k.SummaryID), PriorSummaryID: toUUID(k.PriorSummaryID),
			Trigger: k.Trigger, Outcome: string(k.Outcome), Reason: k.Reason, Model: k.Model, Instructions: k.Instructions,
			Settings: k.Settings, Attempts: k.Attempts, MessagesBefore: int32(k.MessagesBefore), MessagesAfter: int32(k.MessagesAfter),
			TokensBefore: int64(k.TokensBefore), TokensAfter: int64(k.TokensAfter), FoldedMessages: int32(k.FoldedMessages),
			FoldedTokens: int64(k.FoldedTokens), PromptTokens: int64(k.PromptTokens), CompletionTokens: int64(k.CompletionTokens),
			DurationMs: k.Duration.Milliseconds(), CreatedAt: k.CreatedAt, RemadeID: toUUID(k.RemadeID),
		})
	})
	if err != nil {
		return Compaction{}, err
	}
	return k, nil
}

// land inserts the summary if it still may, and notes what became of it.
func (s *Store) land(ctx context.Context, k *Compaction, n NewSummary) error {
	applicable, err := s.Summaries().Applicable(ctx, k.ConversationID, n.AnchorID)
	if err != nil {
		return err
	}
	if n.Over == uuid.Nil {
		n.Over = k.PriorSummaryID
	}
	if applicable != n.Over {
		k.Outcome, k.Reason = OutcomeSuperseded, "Another summary was saved or undone on this branch meanwhile."
	}
	n.Range.PriorSummaryID = k.PriorSummaryID
	// A message can't be pruned without those below it, so the deepest tells of all.
	version, err := s.Version(ctx, k.ConversationID, cmp.Or(n.ReadID, n.AnchorID))
	if err != nil && !errors.Is(err, errMessageNotFound) {
		return err
	}
	if err != nil || n.ReadID != uuid.Nil && version != n.ReadVersion {
		k.Outcome, k.Reason = OutcomeStale, "The messages that it summarizes were deleted or changed meanwhile."
	}
	if k.Outcome != OutcomeSaved {
		return nil
	}
	if err := s.after(ctx, k, &n); errors.Is(err, errSummaryNotFound) {
		k.Outcome, k.Reason = OutcomeSuperseded, "The summary that was merged was undone meanwhile."
		return nil
	} else if err != nil {
		return err
	}
	saved, err := s.Summaries().Add(ctx, k.ConversationID, n)
	k.SummaryID = saved.ID
	return err
}

// Version returns the Version of a message. A message that isn't there is a
// fault.NotFound.
func (s *Store) Version(ctx context.Context, conversationID, messageID uuid.UUID) (_ Version, err error) {
	defer db.Wrap(&err, "tree.Version(%s, %s)", conversationID, messageID)
	row, err := s.q.GetRecallBranch(ctx, db.GetRecallBranchParams{ConversationID: toUUID(conversationID), HeadID: toUUID(messageID), TenantID: s.tenant, Reader: s.reader})
	return Version(row.Version), orMissing(err, errMessageNotFound)
}

// Applicable returns the id of the summary that applies at a message, or
// uuid.Nil for none. It walks up to that summary's anchor. It doesn't check
// that the conversation is the tenant's.
func (s *Summaries) Applicable(ctx context.Context, conversationID, messageID uuid.UUID) (_ uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Summaries.Applicable(%s, %s)", conversationID, messageID)
	id, err := s.q.GetApplicableSummary(ctx, db.GetApplicableSummaryParams{ConversationID: toUUID(conversationID), ID: toUUID(messageID)})
	if isNoRows(err) {
		return uuid.Nil, nil
	}
	return uuid.UUID(id.Bytes), err
}

// after dates a summary after the one that it takes the place of, whatever the
// clocks of two servers say: of several at one anchor the newest applies. Where
// text of the one that it merges came from outside, it may have passed into it.
func (s *Store) after(ctx context.Context, k *Compaction, n *NewSummary) error {
	n.CreatedAt = now()
	for _, id := range []uuid.UUID{k.PriorSummaryID, n.Over} {
		if id == uuid.Nil {
			continue
		}
		before, err := s.Summaries().One(ctx, k.ConversationID, id)
		if err != nil {
			return err
		}
		if !n.CreatedAt.After(before.CreatedAt) {
			n.CreatedAt = before.CreatedAt.Add(time.Microsecond)
		}
		if id == k.PriorSummaryID {
			n.Range.Origin = before.Range.Origin.merged()
		}
		if k.PriorSummaryID == n.Over {
			break
		}
	}
	return nil
}

// Compactions lists the compactions of a conversation, newest first.
func (s *Summaries) Compactions(ctx context.Context, conversationID uuid.UUID, p Paging) (_ Page[Compaction], err error) {
	defer db.Wrap(&err, "tree.Summaries.Compactions(%s)", conversationID)
	limit, before, err := p.timed("compactions", s.tenant, conversationID.String())
	if err != nil {
		return Page[Compaction]{}, err
	}
	if _, err := s.store().Conversation(ctx, conversationID); err != nil {
		return Page[Compaction]{}, err
	}
	rows, err := s.q.ListCompactions(ctx, db.ListCompactionsParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader,
		BeforeCreatedAt: before.time(), BeforeID: toUUID(before.ID), RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	})
	if err != nil {
		return Page[Compaction]{}, err
	}
	out, more := make([]Compaction, len(rows)), false
	for i, row := range rows {
		out[i], more = fromCompaction(row.Compaction), row.More
	}
	return paged(out, more, before, func(k Compaction) Position { return timed(k.CreatedAt, k.ID) }), nil
}

// fromCompaction is the one converter of compaction rows.
func fromCompaction(row db.Compaction) Compaction {
	return Compaction{
		ConversationID: uuid.UUID(row.ConversationID.Bytes), ID: uuid.UUID(row.ID.Bytes), HeadID: uuid.UUID(row.HeadID.Bytes),
		AnchorID: uuid.UUID(row.AnchorID.Bytes), CutoffID: uuid.UUID(row.CutoffID.Bytes), SummaryID: uuid.UUID(row.SummaryID.Bytes),
		PriorSummaryID: uuid.UUID(row.PriorSummaryID.Bytes), Trigger: row.Trigger, Outcome: Outcome(row.Outcome), Reason: row.Reason,
		Model: row.Model, Instructions: row.Instructions, Settings: row.Settings, Attempts: row.Attempts,
		MessagesBefore: int(row.MessagesBefore), MessagesAfter: int(row.MessagesAfter),
		TokensBefore: int(row.TokensBefore), TokensAfter: int(row.TokensAfter),
		FoldedMessages: int(row.FoldedMessages), FoldedTokens: int(row.FoldedTokens),
		PromptTokens: int(row.PromptTokens), CompletionTokens: int(row.CompletionTokens),
		Duration: time.Duration(row.DurationMs) * time.Millisecond, CreatedAt: row.CreatedAt.UTC(),
		RemadeID: uuid.UUID(row.RemadeID.Bytes),
	}
}

// Fruitless is a compaction that left its branch unchanged.
type Fruitless struct {
	CutoffID       uuid.UUID
	RemadeID       uuid.UUID // summary that was to be made again; uuid.Nil for none
	Outcome        Outcome
	MessagesBefore int
	TokensBefore   int
	CreatedAt      time.Time
}

// Fruitless returns the newest compactions that ran with exactly these
// settings, were not asked for by a request, and left their branch unchanged,
// newest first.
func (s *Summaries) Fruitless(ctx context.Context, conversationID uuid.UUID, settings json.RawMessage) (_ []Fruitless, err error) {
	defer db.Wrap(&err, "tree.Summaries.Fruitless(%s)", conversationID)
	rows, err := s.q.ListFruitlessCompactions(ctx, db.ListFruitlessCompactionsParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Settings: string(settings), RowLimit: maxFruitless,
	})
	out := make([]Fruitless, len(rows))
	for i, row := range rows {
		out[i] = Fruitless{
			CutoffID: uuid.UUID(row.CutoffID.Bytes), RemadeID: uuid.UUID(row.RemadeID.Bytes), Outcome: Outcome(row.Outcome),
			MessagesBefore: int(row.MessagesBefore), TokensBefore: int(row.TokensBefore), CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return out, err
}

// maxFruitless is how many are given. Whoever waits twice as long after each
// doesn't come to so many.
const maxFruitless = 64

// All lists a conversation's summaries of all branches without their
// bodies, newest first.
func (s *Summaries) All(ctx context.Context, conversationID uuid.UUID) (_ []Summary, err error) {
	defer db.Wrap(&err, "tree.Summaries.All(%s)", conversationID)
	rows, err := s.q.ListSummaries(ctx, db.ListSummariesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	if err == nil && len(rows) == 0 {
		_, err = s.store().Conversation(ctx, conversationID)
	}
	if err != nil {
		return nil, err
	}
	out := make([]Summary, len(rows))
	for i, row := range rows {
		out[i] = Summary{
			ConversationID: conversationID, ID: uuid.UUID(row.ID.Bytes), AnchorID: uuid.UUID(row.ParentID.Bytes),
			Range:  fromRange(row.LastSummarizedID, row.PriorSummaryID, row.KeptIds, row.Model, row.Origin),
			Tokens: int(row.Tokens), Depth: int(row.Depth), CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return out, nil
}

// OnBranch returns the ids of the summaries whose anchor is on root →
// headID. It walks the whole path.
func (s *Summaries) OnBranch(ctx context.Context, conversationID, headID uuid.UUID) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Summaries.OnBranch(%s, head %s)", conversationID, headID)
	ids, err := s.q.ListBranchSummaries(ctx, db.ListBranchSummariesParams{
		ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Reader: s.reader,
	})
	if err == nil && len(ids) == 0 {
		_, err = s.store().Message(ctx, conversationID, headID)
	}
	return fromUUIDs(ids), err
}

// One reads one summary. The id of a message is a fault.NotFound.
func (s *Summaries) One(ctx context.Context, conversationID, id uuid.UUID) (_ Summary, err error) {
	defer db.Wrap(&err, "tree.Summaries.One(%s, %s)", conversationID, id)
	row, err := s.store().node(ctx, conversationID, id)
	if err != nil {
		return Summary{}, orMissing(err, errSummaryNotFound)
	}
	if row.Node.Kind != string(KindSummary) {
		return Summary{}, errSummaryNotFound
	}
	return fromSummary(row.Node), nil
}

// CallsTools reports whether a message is answered by a call of a tool, on any
// branch. It doesn't check that the conversation is the tenant's.
func (s *Store) CallsTools(ctx context.Context, conversationID, messageID uuid.UUID) (_ bool, err error) {
	defer db.Wrap(&err, "tree.CallsTools(%s, %s)", conversationID, messageID)
	return s.q.CallsTools(ctx, db.CallsToolsParams{ConversationID: toUUID(conversationID), ID: toUUID(messageID)})
}

// DroppedPins returns the pinned messages that a summary folds and doesn't keep,
// oldest first. It walks the path above the cutoff.
func (s *Summaries) DroppedPins(ctx context.Context, conversationID uuid.UUID, of SummaryRange) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Summaries.DroppedPins(%s, cutoff %s)", conversationID, of.LastSummarizedID)
	ids, err := s.q.ListDroppedPins(ctx, db.ListDroppedPinsParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, CutoffID: toUUID(of.LastSummarizedID), KeptIds: toUUIDs(of.KeptIDs),
	})
	return fromUUIDs(ids), err
}

// A Writing is what wrote a summary, as the record of its compaction tells.
type Writing struct {
	SummaryID      uuid.UUID
	PriorSummaryID uuid.UUID // summary that it merged; uuid.Nil for none
	Model          string
	Attempts       json.RawMessage // the calls of models
}

// Writings returns what wrote the summaries of a conversation, also those that were
// undone since. A summary from an import or a fork has none.
func (s *Summaries) Writings(ctx context.Context, conversationID uuid.UUID) (_ []Writing, err error) {
	defer db.Wrap(&err, "tree.Summaries.Writings(%s)", conversationID)
	rows, err := s.q.ListWriters(ctx, db.ListWritersParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	out := make([]Writing, len(rows))
	for i, row := range rows {
		out[i] = Writing{uuid.UUID(row.SummaryID.Bytes), uuid.UUID(row.PriorSummaryID.Bytes), row.Model, row.Attempts}
	}
	return out, err
}
