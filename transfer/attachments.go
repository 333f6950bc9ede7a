package transfer

import (
	"crypto/sha256"
	"fmt"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// files are the attachments of a run.
type files struct {
	sound         map[[sha256.Size]byte]bool // of the file; false of one that was refused
	found, stored int
}

// maxFiles is how many attachments a file may bring: each takes some memory until
// the end of the run.
const maxFiles = 100_000

func newFiles() files { return files{sound: map[[sha256.Size]byte]bool{}} }

// attachment stores an attachment of the file at once, so that it takes no memory
// while the file is read on, and before the messages that name it are counted.
func (im *importer) attachment(a format.Attachment) error {
	im.bounds.pass(a.Taken)
	if _, again := im.files.sound[a.Hash]; again {
		return im.stopped()
	}
	if len(im.files.sound) == maxFiles {
		return tooLarge("it brings over %d attachments", maxFiles)
	}
	created, err := im.attach(a)
	switch {
	case fault.Refused(err):
		im.note(format.Note{Action: format.LeftOut, Kind: format.KindAttachment, Place: format.CutNote(a.Place),
			Detail: fmt.Sprintf("the attachment %q was refused: %s", format.Clip(a.Name), fault.Of(err).Detail)})
	case err != nil:
		im.stop(err)
		return err
	default:
		im.files.found++
	}
	if im.files.sound[a.Hash] = err == nil; created {
		im.files.stored++
	}
	return im.stopped()
}

func (im *importer) attach(a format.Attachment) (created bool, err error) {
	if im.opts.DryRun {
		_, err = attach.Read(im.ctx, a.Data)
		return false, err
	}
	_, created, err = im.store.AddAttachment(im.ctx, a.Name, a.Data)
	return created, err
}

// missing notes which attachments the messages of a conversation name that are not
// there. In a dry run the file may bring them; else the store has them by now, and
// those that stored messages name stay.
func (s *saver) missing(e entry, brought map[[sha256.Size]byte]bool) (notes []format.Note, err error) {
	var named []chat.Attachment
	var hashes [][sha256.Size]byte
	seen := map[[sha256.Size]byte]bool{}
	for _, n := range e.Nodes {
		if !chat.MayName(n.Body) {
			continue
		}
		for _, a := range chat.Read(n.Body).Attachments() {
			if !a.Valid || brought[a.Hash] || seen[a.Hash] {
				continue
			}
			seen[a.Hash] = true
			named, hashes = append(named, a), append(hashes, a.Hash)
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	var there map[[sha256.Size]byte]tree.Attachment
	if s.store != nil {
		if there, err = s.store.Attachments(s.ctx, hashes...); err != nil {
			return nil, err
		}
	}
	for _, a := range named {
		if _, ok := there[a.Hash]; ok || len(notes) == format.MaxNotes {
			continue
		}
		notes = append(notes, format.Note{Action: format.LeftOut, Kind: format.KindAttachment, Conversation: e.title(), Place: fmt.Sprintf("%x", a.Hash),
			Detail: fmt.Sprintf("the attachment %q is not there; upload it, and the messages that name it have it", format.Clip(a.Name))})
	}
	return notes, nil
}
