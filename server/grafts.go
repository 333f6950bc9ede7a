package server

import (
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// newGraft is the schema of this name.
type newGraft struct {
	id, fromHeadID, include, instructions, text *string
	dryRun                                      *bool
}

func (b *newGraft) fields() []field {
	return []field{
		{"dry_run", false, &b.dryRun}, {"from_head_id", true, &b.fromHeadID}, {"id", false, &b.id}, {"include", false, &b.include},
		{"instructions", false, &b.instructions}, {"text", false, &b.text},
	}
}

func (b *newGraft) read(o reader.Object) error { return bind(o, b.fields()) }

func (b *newGraft) demand() (d summarize.GraftDemand, err error) {
	d = summarize.GraftDemand{Include: tree.Include(deref(b.include)), Instructions: deref(b.instructions), Text: deref(b.text)}
	switch {
	case b.include != nil && *b.include == "":
		return d, problemf(CodeInvalidDemand, "include", "It must be summary or messages.")
	case b.text != nil && *b.text == "":
		return d, problemf(CodeInvalidDemand, "text", "It is empty. Leave it out to have it written.")
	case b.text != nil && deref(b.dryRun):
		return d, problemf(CodeInvalidDemand, "dry_run", "The text is given, so there is none to read before. Leave one of the two out.")
	}
	d.FromHeadID, err = parseID(*b.fromHeadID, "from_head_id")
	return d, err
}

func createGraft(r *Request) (Answer, error) {
	b := r.body.(*newGraft)
	d, err := b.demand()
	if err != nil {
		return nil, err
	}
	conversationID, headID, err := r.branch()
	if err != nil {
		return nil, err
	}
	if deref(b.dryRun) {
		text, err := r.Contexts().WriteGraft(r.Context(), conversationID, headID, d)
		if err != nil {
			return nil, err
		}
		return answerStruct(text)
	}
	id, derived, err := r.newID(b.id, conversationID.String()+"/grafts")
	if err != nil {
		return nil, err
	}
	return r.graft(conversationID, headID, id, derived, d)
}

func (r *Request) graft(conversationID, headID, id uuid.UUID, derived bool, d summarize.GraftDemand) (Answer, error) {
	m, err := r.Contexts().Graft(r.Context(), conversationID, headID, id, d)
	r.server.countAppend(1, m.Created, err)
	if err != nil {
		return nil, ConflictOfKey(err, derived)
	}
	return answerCreated(m.Message, m.Created, messagePath(m.Message))
}
