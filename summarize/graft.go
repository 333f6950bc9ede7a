package summarize

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// TriggerGraft is of a text that was written for a graft: the record of a compaction
// which folded nothing.
const TriggerGraft Trigger = "graft"

// A GraftDemand says what a graft brings to a branch.
type GraftDemand struct {
	FromHeadID   uuid.UUID    // the branch that it comes from
	Include      tree.Include // "" stands for a summary
	Instructions string       // what the summary should take care of; "" for none
	Text         string       // that is brought instead of one that is written now; "" for none
}

func (d *GraftDemand) check() error {
	d.Include = cmp.Or(d.Include, tree.IncludeSummary)
	switch {
	case d.Include != tree.IncludeSummary && d.Include != tree.IncludeMessages:
		return demandFault("include", "It must be summary or messages.")
	case instructionsFault(d.Instructions) != "":
		return demandFault("instructions", "%s", instructionsFault(d.Instructions))
	case d.Instructions != "" && (d.Include == tree.IncludeMessages || d.Text != ""):
		return demandFault("instructions", "No model writes this text, so nobody follows them. Leave them out, or have a summary written.")
	}
	return nil
}

// A GraftText is what a graft would bring.
type GraftText struct {
	Text    string     `json:"text"`
	Tokens  int        `json:"tokens"` // of its message
	Grafted tree.Graft `json:"grafted"`

	from        tree.Parting
	attachments []chat.Part // that stand behind the text
}

func (g *GraftText) message() *chat.Message {
	return chat.Read(prompt.WrapGraft(g.Text, g.attachments...))
}

// WriteGraft returns the text that Graft would bring to a branch, and stores no
// message. So a person can change it, and have Graft bring what came of it.
//
// A summary is written as that of a compaction is: by the same models, held against the
// messages by the same audit, and recorded with the compactions. Where no model answers,
// the offline digest writes it, unless the settings say never: then it is a fault.Model.
func (s *Service) WriteGraft(ctx context.Context, conversationID, headID uuid.UUID, d GraftDemand) (g GraftText, err error) {
	defer fault.Wrap(&err, "summarize.WriteGraft(%s, head %s from %s)", conversationID, headID, d.FromHeadID)
	if headID, err = s.headOf(ctx, conversationID, headID); err != nil {
		return g, err
	}
	return s.writeGraft(ctx, conversationID, headID, d)
}

// headOf is the active head where none is named.
func (s *Service) headOf(ctx context.Context, conversationID, headID uuid.UUID) (uuid.UUID, error) {
	if headID != uuid.Nil {
		return headID, nil
	}
	return s.store.Head(ctx, conversationID)
}

func (s *Service) writeGraft(ctx context.Context, conversationID, headID uuid.UUID, d GraftDemand) (g GraftText, err error) {
	if err := d.check(); err != nil {
		return g, err
	}
	if g.from, err = s.store.SinceParted(ctx, conversationID, headID, d.FromHeadID); err != nil {
		return g, err
	}
	if err := s.store.CheckClosed(ctx, conversationID, headID); err != nil {
		return g, err
	}
	g.Grafted = tree.Graft{FromHeadID: d.FromHeadID, AncestorID: g.from.AncestorID, Messages: len(g.from.Messages), Include: d.Include, Instructions: d.Instructions}
	switch {
	case d.Include == tree.IncludeMessages:
		messages, err := s.store.Messages(ctx, conversationID, idsOf(g.from.Messages))
		if err != nil {
			return g, err
		}
		g.Text = cmp.Or(d.Text, prompt.Quote(messages))
		if g.attachments, err = s.attachmentsOf(ctx, messages); err != nil {
			return g, err
		}
	case d.Text != "":
		g.Text = d.Text
	default:
		if g.Text, g.Grafted.Model, err = s.summarizeGraft(ctx, conversationID, headID, d, g.from); err != nil {
			return g, err
		}
	}
	g.Tokens, err = s.store.Cost(ctx, g.message())
	return g, err
}

// attachmentsOf returns the parts of messages that name attachments which are there:
// those of an imported message may not be.
func (s *Service) attachmentsOf(ctx context.Context, messages []tree.Message) ([]chat.Part, error) {
	parts := prompt.Attachments(messages...)
	var hashes [][sha256.Size]byte
	for _, p := range parts {
		a, _ := p.Attachment()
		hashes = append(hashes, a.Hash)
	}
	there, err := s.store.Attachments().All(ctx, hashes...)
	return slices.DeleteFunc(parts, func(p chat.Part) bool {
		named, _ := p.Attachment()
		a, ok := there[named.Hash]
		return !ok || a.Image() != named.Image
	}), err
}

func idsOf(messages []tree.Message) []uuid.UUID {
	ids := make([]uuid.UUID, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}

// summarizeGraft has the messages of another branch summarized, and records what it
// took.
func (s *Service) summarizeGraft(ctx context.Context, conversationID, headID uuid.UUID, d GraftDemand, from tree.Parting) (text, model string, err error) {
	start := time.Now()
	v, err := s.store.View(ctx, conversationID, headID, 0, tree.Skeleton())
	if err != nil {
		return "", "", err
	}
	a := assessment{view: v}
	if a.settings, err = s.windowOf(v, Window{}); err != nil {
		return "", "", err
	}
	path := make([]tree.PathMessage, len(from.Messages))
	for i, m := range from.Messages {
		path[i].Message = m
	}
	tokens := tree.Tokens(path)
	a.plan = &Plan{Target: a.settings.Budget().TargetFor(tokens, 0)}
	req := s.within(ctx, compactionRequest{trigger: TriggerGraft, demand: &Demand{Instructions: d.Instructions}})
	if a.capped, err = s.overCost(ctx, conversationID, a.settings); err != nil {
		return "", "", err
	}
	record := tree.Compaction{
		ConversationID: conversationID, ID: uuid.Must(uuid.NewV7()), HeadID: headID, Trigger: string(TriggerGraft), Instructions: d.Instructions,
		Settings: a.settings.json(), FoldedMessages: len(path), FoldedTokens: tokens,
	}
	if a.settings.Digest != DigestNever {
		a.settings.Digest = DigestAlways // the messages don't stand beside it, as those of a branch would
	}
	r, err := s.writeAll(ctx, a, req, prompt.Input{}, path, func(part []tree.PathMessage) ([]tree.Message, error) {
		ids := make([]uuid.UUID, len(part))
		for i, m := range part {
			ids[i] = m.ID
		}
		return s.store.Messages(ctx, conversationID, ids)
	})
	if errors.Is(err, fault.NotFound) {
		err = fault.At(err, "from_head_id") // pruned meanwhile
	}
	if len(r.Attempts) == 0 {
		return "", "", err
	}
	attempted(&record, r.Attempts)
	record.Model, record.Outcome = r.Model, tree.OutcomeSaved
	record.Reason = fmt.Sprintf("A text for a graft: what %d messages of the branch %s say.", len(path), d.FromHeadID)
	if err != nil {
		record.Model, record.Outcome, record.Reason = "", tree.OutcomeFailed, whyNone(r.Attempts)
	}
	record.Duration = time.Since(start)
	recorded, failed := s.store.Summaries().Record(context.WithoutCancel(ctx), record, nil)
	if err = cmp.Or(err, failed); err != nil {
		return "", "", err
	}
	s.report(ctx, recorded)
	return r.Text, r.Model, nil
}

// Graft appends a message to a branch that says what another branch came to since the
// two parted: as WriteGraft writes it, or as the demand's Text says. A headID of uuid.Nil
// is the active head, and an id of uuid.Nil is made here. Asked again with the same id and
// demand, Graft asks no model, and returns the stored message.
func (s *Service) Graft(ctx context.Context, conversationID, headID, id uuid.UUID, d GraftDemand) (a tree.Appended, err error) {
	defer fault.Wrap(&err, "summarize.Graft(%s, head %s from %s)", conversationID, headID, d.FromHeadID)
	if err := d.check(); err != nil {
		return a, err
	}
	if id != uuid.Nil {
		a.Message, err = s.grafted(ctx, conversationID, headID, id, d)
		if err == nil || !errors.Is(err, fault.NotFound) {
			return a, err
		}
	}
	if headID, err = s.headOf(ctx, conversationID, headID); err != nil {
		return a, err
	}
	g, err := s.writeGraft(ctx, conversationID, headID, d)
	if err != nil {
		return a, err
	}
	m := tree.NewMessage{ID: id, Message: g.message(), Graft: &g.Grafted}
	a, err = s.store.AppendGraft(ctx, conversationID, headID, m, g.from)
	if err != nil && fault.Of(err).Code == "id_conflict" { // the same request may have come twice at a time
		a.Message, err = s.grafted(ctx, conversationID, headID, id, d)
	}
	return a, err
}

// grafted is the message that the same request stored before. A message of its id that
// another request stored is a fault.Conflict.
func (s *Service) grafted(ctx context.Context, conversationID, headID, id uuid.UUID, d GraftDemand) (tree.Message, error) {
	m, err := s.store.Message(ctx, conversationID, id)
	if err != nil {
		return m, err
	}
	g := m.Graft
	written := d.Text == "" && d.Include == tree.IncludeSummary // by a model, which is named then
	if g == nil || written && g.Model == "" || headID != uuid.Nil && m.ParentID != headID || g.FromHeadID != d.FromHeadID ||
		g.Include != d.Include || g.Instructions != d.Instructions || d.Text != "" && !bytes.Equal(m.Body, prompt.WrapGraft(d.Text, prompt.Attachments(m)...)) {
		return m, fault.New(fault.Conflict, "id_conflict", "id", "The id %s is taken by another message. Send a new id, or none.", id)
	}
	return m, nil
}
