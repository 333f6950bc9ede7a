package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-chat/coppice/transfer/format"
)

// notes keep so many notes of a run, of so many bytes, and count the rest.
type notes struct {
	sync.Mutex
	room    int // for more
	bytes   int // of text that they may have
	kept    []kept
	index   map[Note]int // in kept
	omitted int
}

// A kept note is one of the report, which may have come up more than once.
type kept struct {
	Note
	at    int // the place in the file
	times int
}

const (
	defaultNotes = 50_000
	noteBytes    = 400 // of one, on average
)

func newNotes(most int) *notes {
	most = cmp.Or(most, defaultNotes)
	return &notes{room: most, bytes: noteBytes * most, index: map[Note]int{}}
}

// add takes notes that stand at a place in the file, behind those that it has of the
// same place.
func (n *notes) add(at int, more ...Note) {
	n.Lock()
	defer n.Unlock()
	for _, note := range more {
		if i, there := n.index[note]; there {
			n.kept[i].times++
			continue
		}
		size := len(note.Conversation) + len(note.Place) + len(note.Detail)
		if n.room == 0 || size > n.bytes {
			n.omitted++
			continue
		}
		n.room--
		n.bytes -= size
		n.index[note] = len(n.kept)
		n.kept = append(n.kept, kept{note, at, 1})
	}
}

// all gives the notes in the order of the file.
func (n *notes) all() []Note {
	slices.SortStableFunc(n.kept, func(a, b kept) int { return cmp.Compare(a.at, b.at) })
	all := []Note{} // for programs, which get none as a list
	for _, k := range n.kept {
		if k.times > 1 {
			k.Detail += fmt.Sprintf(" (%d times)", k.times)
		}
		all = append(all, k.Note)
	}
	if n.omitted > 0 {
		all = append(all, Note{Action: format.LeftOut, Kind: format.KindSyntax, Detail: fmt.Sprintf("%d more notes, which are not listed", n.omitted)})
	}
	return all
}
