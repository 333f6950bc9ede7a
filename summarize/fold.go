package summarize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A Folded is a history that no branch holds, with a summary in place of its
// older part.
type Folded struct {
	Messages []json.RawMessage // the model's input: the leading instructions, the summary, and the messages that stay verbatim
	Summary  json.RawMessage   // the summary's message; nil where nothing was folded

	Model                          string // that wrote the summary
	PromptTokens, CompletionTokens int    // of all calls
	ReasoningTokens                int    // the part of CompletionTokens that was reasoning
}

// Fold returns a history with a summary in place of its older part, as a
// compaction on demand does with a branch, and stores nothing. The history is
// that of one client's request, as chat-completions messages. If the history
// has a summary's message, that summary is merged into the new one. If nothing
// can be folded, the history comes back as it is.
//
// Fold takes as long as the summarizers, and ends before a deadline of ctx. If
// none of them gives a summary, it is a fault.Model.
func (s *Service) Fold(ctx context.Context, history []json.RawMessage, w Window, d Demand) (f Folded, err error) {
	defer fault.Wrap(&err, "summarize.Fold(%d messages)", len(history))
	if err := d.check(); err != nil {
		return f, err
	}
	settings, err := w.over(s.settings)
	if err != nil {
		return f, err
	}
	v, err := s.viewOf(ctx, history)
	if err != nil {
		return f, err
	}
	settings.Compaction = ModeAuto
	plan, _ := MakePlan(v, settings, &d)
	if plan == nil {
		return Folded{Messages: history}, nil
	}
	a := assessment{view: v, settings: settings, plan: plan}
	r, err := s.foldText(ctx, a, s.within(ctx, compactionRequest{demand: &d}))
	if err != nil {
		return f, err
	}
	f.Model = r.Model
	for _, a := range r.Attempts {
		f.PromptTokens += a.PromptTokens
		f.CompletionTokens += a.CompletionTokens
		f.ReasoningTokens += a.ReasoningTokens
	}
	folded := make(map[uuid.UUID]tree.Message, len(plan.Fold))
	for _, m := range plan.Fold {
		folded[m.ID] = m.Message
	}
	kept := make([]prompt.Kept, len(plan.Kept))
	for i, k := range plan.Kept {
		kept[i] = prompt.Kept{Message: folded[k.ID], Limit: k.Limit}
	}
	f.Summary, _ = prompt.Wrap(r.Text, kept, s.count)
	f.Messages = append(f.Messages, history[:len(v.Prefix)]...)
	f.Messages = append(f.Messages, f.Summary)
	tail := history[len(history)-plan.Tail:]
	if len(tail) > 0 && chat.Read(tail[0]).Role == tree.RoleUser {
		f.Messages = append(f.Messages, chat.Acknowledgment())
	}
	f.Messages = append(f.Messages, tail...)
	return f, nil
}

// viewOf is a history as a branch that is nowhere stored. Its ids mean nothing.
func (s *Service) viewOf(ctx context.Context, history []json.RawMessage) (v tree.View, err error) {
	for i, body := range history {
		said := chat.Read(body)
		m := tree.PathMessage{Message: tree.Message{ID: uuid.Must(uuid.NewV7()), Body: body, Role: said.Role, Depth: i}}
		if m.Tokens, err = s.store.Cost(ctx, said); err != nil {
			return v, err
		}
		m.Calls, m.Answers = chat.CallIDs(body)
		if prompt.Wrapped(body) {
			m.Role = tree.RoleAssistant // no words of the user's, which stay
		}
		if len(v.Tail) == 0 && (m.Role == tree.RoleSystem || m.Role == tree.RoleDeveloper) {
			v.Prefix = append(v.Prefix, m)
		} else {
			v.Tail = append(v.Tail, m)
		}
	}
	v.Tail = weigh(v.Tail, s.count)
	return v, nil
}

// foldText has the fold of an assessment's plan summarized, which has the messages'
// bodies.
func (s *Service) foldText(ctx context.Context, a assessment, req compactionRequest) (prompt.Result, error) {
	in := prompt.Input{Stays: prompt.Stays{}}
	for _, k := range a.plan.Kept {
		in.Stays[k.ID] = k.Limit == 0
	}
	var rest []tree.PathMessage
	for _, m := range a.plan.Fold {
		switch {
		case prompt.Wrapped(m.Body):
			in.Prior = prompt.Unwrap(m.Body)
			continue
		case in.Prior != "" && len(rest) == 0 && bytes.Equal(m.Body, chat.Acknowledgment()):
			continue
		}
		rest = append(rest, m)
	}
	return s.writeAll(ctx, a, req, in, rest, func(part []tree.PathMessage) ([]tree.Message, error) {
		read := make([]tree.Message, len(part))
		for i, m := range part {
			read[i] = m.Message
		}
		return read, nil
	})
}

// writeAll has messages summarized that needn't be folded, in as many steps as it
// takes, each of which merges the text before it. It reads the messages of one step at
// a time. The result has the attempts of all steps, and also has them where none gives
// a summary, which is a fault.Model.
func (s *Service) writeAll(ctx context.Context, a assessment, req compactionRequest, in prompt.Input, rest []tree.PathMessage, read func([]tree.PathMessage) ([]tree.Message, error)) (all prompt.Result, err error) {
	models, cancel := req.forModels(ctx)
	defer cancel()
	in.Nonce, in.TargetTokens = prompt.Nonce(uuid.Must(uuid.NewV7())), a.plan.Target
	in.Instructions = instructions(a.settings, req.demand.Instructions)
	all.Text = in.Prior
	for len(rest) > 0 {
		in.Prior, in.PriorTokens = all.Text, s.count.Count(all.Text)
		if in.Fold, err = read(rest[:s.portion(models, a, rest, req)]); err != nil {
			return all, err
		}
		if in.Files, err = s.filesOf(ctx, in.Fold); err != nil {
			return all, err
		}
		r, err := s.ask(ctx, models, in, a, req)
		if err != nil {
			return all, err
		}
		all.Attempts = append(all.Attempts, r.Attempts...)
		if r.Text == "" {
			return all, fault.New(fault.Model, "model_unavailable", "", "%s Send the request again later.", cmp.Or(a.capped, whyNone(all.Attempts)))
		}
		all.Text, all.Model, rest = r.Text, r.Model, rest[r.Taken:]
	}
	return all, nil
}
