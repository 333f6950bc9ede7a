package tree

import (
	"context"

	"github.com/google/uuid"
)

func (im *importer) addSummary(ctx context.Context, n BundleNode, anchor parentState) error {
	d, err := im.s.summaryDraft(ctx, NewSummary{ID: n.ID, AnchorID: n.ParentID, Range: *n.Summary, Body: n.Body, Metadata: n.Metadata, CreatedAt: n.CreatedAt})
	if err != nil {
		return err
	}
	cutoff := im.known[n.Summary.LastSummarizedID]
	at := im.above(im.known[n.ParentID], cutoff.depth)
	if cutoff.id == uuid.Nil || at.id != cutoff.id {
		return errCutoff
	}
	r := *n.Summary
	r.Origin = imported(r.Origin, im.format, im.at)
	row := d.summaryRow(im.id, anchor, r)
	im.known[n.ID] = known{parentState: parentState{id: n.ID}, parentID: n.ParentID, kind: KindSummary}
	im.addRow(row)
	return nil
}

// jumpBelow gives the message that a message below parentID jumps to: so far above that
// above passes a path of n messages in some 2 log n jumps. A root jumps to itself.
func (im *importer) jumpBelow(id, parentID uuid.UUID) uuid.UUID {
	parent, ok := im.known[parentID]
	if !ok {
		return id
	}
	jump := im.known[parent.jump]
	if next := im.known[jump.jump]; parent.depth-jump.depth == jump.depth-next.depth {
		return jump.jump
	}
	return parentID
}

// above gives the message of a depth on the path to at: at itself, if that is no
// deeper.
func (im *importer) above(at known, depth int) known {
	for at.depth > depth {
		if jump := im.known[at.jump]; jump.depth >= depth {
			at = jump
		} else {
			at = im.known[at.parentID]
		}
	}
	return at
}

// callsAt is Store.callsAt among nodes of which some aren't stored yet, as far
// as it concerns one call.
func (im *importer) callsAt(ctx context.Context, parentID uuid.UUID, call string) (calls, error) {
	answered := false
	for id := parentID; id != uuid.Nil; id = im.known[id].parentID {
		k := im.known[id]
		if k.role == RoleTool {
			answered = answered || k.answers == call
			continue
		}
		if k.stored && k.made == nil {
			var err error
			if k.made, err = im.s.callsAt(ctx, im.id, k.id); err != nil {
				return nil, err
			}
			im.known[id] = k // for the next result below it
		}
		before, made := k.made[call]
		if !made {
			return nil, nil
		}
		return calls{call: before || answered}, nil
	}
	return nil, nil
}
