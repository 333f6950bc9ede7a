package wire

import (
	"slices"

	"github.com/coppice-chat/coppice/chat"
)

// A history may name one stored message in several entries: some clients send each
// call of an answer with its output. Then these entries are that message, and the
// outputs follow it. With anything else between, the history is none that the tree
// can hold, and OpenAI refuses it as well.

// checkRepeats refuses items of one stored message that other messages stand
// between. It looks behind the last compaction item, which stands for all before it.
func (in *inputReader) checkRepeats() {
	entries := in.out.Entries
	for i, e := range slices.Backward(entries) {
		if e.Compacts() {
			entries = entries[i+1:]
			break
		}
	}
	type named struct{ entry, turns int }
	seen := map[NodeID]named{}
	turns := 0 // entries up to here that are no outputs
	for i, e := range entries {
		if !e.isOutput() {
			turns++
		}
		for _, id := range e.ItemIDs {
			item, err := ParseItemID(id)
			if err != nil {
				continue
			}
			was, again := seen[item.NodeID]
			apart := turns - was.turns - 1
			if e.isOutput() {
				apart = i - was.entry - 1
			}
			if again && apart > 0 {
				in.wrongAt((*fieldPath)(nil).member(in.name), CodeValue, "Duplicate item found with id %s: its message stands above, and others between. Remove duplicate items from your input and try again.", id)
				return
			}
			seen[item.NodeID] = named{i, turns}
		}
	}
}

// isOutput tells whether an entry is the output of a call.
func (e Entry) isOutput() bool {
	return e.Message != nil && e.Message.Role == chat.Tool || e.Reference != nil && e.Reference.Kind == KindCallOutput
}

// Nodes are the messages that the ids of an entry's items name, the last first.
func (e Entry) Nodes() (all []NodeID) {
	for _, id := range slices.Backward(e.ItemIDs) {
		if item, err := ParseItemID(id); err == nil && (len(all) == 0 || all[len(all)-1] != item.NodeID) {
			all = append(all, item.NodeID)
		}
	}
	return all
}

func (e Entry) names(n NodeID) bool { return slices.Contains(e.Nodes(), n) }

// Behind gives what comes after a stored message that the entry at last is the last
// one to name: the outputs that stand between its items, and all that follows.
func Behind(entries []Entry, last int, n NodeID, stored *chat.Message) (after []Entry) {
	first := last
	for i := last - 1; i >= 0 && (entries[i].isOutput() || entries[i].names(n)); i-- {
		if entries[i].names(n) {
			first = i
		}
	}
	for _, e := range entries[first : last+1] {
		if !e.names(n) {
			after = append(after, e)
		} else if more := e.Rest(stored); e.Reference != nil && more != nil {
			after = append(after, Entry{At: e.At, Message: more, Phase: e.Phase})
		}
	}
	return append(after, entries[last+1:]...)
}
