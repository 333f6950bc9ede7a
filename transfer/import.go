package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Store takes conversations in. *tree.Store is one.
type Store interface {
	// Import stores the bundles in one transaction: all or, with an error,
	// none. What is there already stays as it is.
	Import(ctx context.Context, bundles ...tree.Bundle) ([]tree.Imported, error)
}

// Options change what Import does. The zero value is a good one.
type Options struct {
	Format   string           // one of Formats; "": recognized from the content
	TenantID string           // whose the store is, so that two tenants can import the same file; "": tree.DefaultTenant
	DryRun   bool             // read, check and report, but store nothing
	Progress func(read int64) // called now and then with the bytes read so far; nil for none
}

// A Report tells what Import found and did. Added and Present stay 0 in a dry
// run.
type Report struct {
	Format        string
	Conversations int
	Messages      int // without summaries
	Summaries     int
	BranchPoints  int // messages that two or more reply to
	Leaves        int // messages that none replies to
	Added         int // nodes stored
	Present       int // nodes that were stored before
	Notes         []Note
}

var (
	// ErrEmpty is of a file with nothing in it.
	ErrEmpty = errors.New("the file is empty")

	// ErrFormat is of a file, or an Options.Format, that is no known format.
	ErrFormat = errors.New("unknown format")
)

// Import reads conversations from r and stores them. The format is recognized
// from the content, a zip archive's from what is in it.
//
// A file comes in as far as it is sound. The report says what came in, and
// names each thing that was repaired or left out; with an error, it tells of
// what was stored before that. Importing the same file again adds nothing, and
// importing a later export of the same conversations adds what is new.
//
// Memory is bounded by the largest conversation, besides the notes; a zip
// archive that can't be read at any offset is put into a temporary file. Small
// conversations go to the store several at a time.
func Import(ctx context.Context, store Store, r io.Reader, opts Options) (Report, error) {
	im := &importer{ctx: ctx, store: store, opts: opts, seen: map[uuid.UUID]bool{}}
	err := im.file(r)
	if flushed := im.flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return im.report, fmt.Errorf("transfer.Import: %w", err)
	}
	return im.report, nil
}

// An importer is one run of Import.
type importer struct {
	ctx    context.Context
	store  Store
	opts   Options
	report Report
	seen   map[uuid.UUID]bool // conversations of this run

	batch []tree.Bundle // for the next call of the store
	notes [][]Note      // of each bundle
	nodes int           // of all of them
}

// batchNodes is how many nodes go to the store in one call, if conversations
// are small. A larger one goes alone.
const batchNodes = 1000

// file reads what may be a zip archive.
func (im *importer) file(r io.Reader) error {
	progress := &counter{report: im.opts.Progress}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && isZip(f) {
			return im.zip(readerAt{f, progress}, info.Size())
		}
	}
	in := bufio.NewReaderSize(reader{r, progress}, headBytes)
	if head, err := in.Peek(len(zipMagic)); err == nil && string(head) == zipMagic {
		return im.spooledZip(in)
	}
	return im.stream(in)
}

var byteOrderMark = []byte("\uFEFF")

// stream reads a file of one format.
func (im *importer) stream(in *bufio.Reader) error {
	if head, err := in.Peek(len(byteOrderMark)); err == nil && bytes.Equal(head, byteOrderMark) {
		_, _ = in.Discard(len(byteOrderMark)) // which Peek has buffered
	}
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(bytes.TrimSpace(head)) == 0 && len(head) < headBytes {
		return ErrEmpty
	}
	f, err := choose(im.opts.Format, head)
	if err != nil {
		return err
	}
	im.report.Format = f.name
	err = f.parse(in, func(c Conversation) error { return im.conversation(c, f.name) }, im.note)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// note takes a note on the file, behind those on the conversation before it.
func (im *importer) note(n Note) {
	if last := len(im.notes) - 1; last >= 0 {
		im.notes[last] = append(im.notes[last], n)
		return
	}
	im.report.Notes = append(im.report.Notes, n)
}

// conversation takes one conversation of the file.
func (im *importer) conversation(c Conversation, format string) error {
	if err := im.ctx.Err(); err != nil {
		return err
	}
	b, notes := normalize(c, format, im.opts.TenantID)
	if im.seen[b.Conversation.ID] {
		notes = append(notes, Note{Repaired, KindDuplicate, c.name(), "", "the conversation stands in the file more than once; what is new in this one was added"})
	}
	if im.nodes+len(b.Nodes) > batchNodes || im.seen[b.Conversation.ID] {
		if err := im.flush(); err != nil {
			return err
		}
	}
	im.seen[b.Conversation.ID] = true
	im.batch = append(im.batch, b)
	im.notes = append(im.notes, notes)
	im.nodes += len(b.Nodes)
	return nil
}

// flush stores the batch. Where the store refuses it, it takes the
// conversations one by one, so that only the unsound one stays out.
func (im *importer) flush() error {
	batch, notes := im.batch, im.notes
	im.batch, im.notes, im.nodes = nil, nil, 0
	if len(batch) == 0 {
		return nil
	}
	var refused *tree.Error
	err := im.save(batch, notes)
	if !errors.As(err, &refused) {
		return err
	}
	for i := range batch {
		err := im.save(batch[i:i+1], notes[i:i+1])
		if errors.As(err, &refused) {
			im.report.Notes = append(append(im.report.Notes, notes[i]...),
				Note{LeftOut, KindConversation, titleOf(batch[i]), "", "the store refused it: " + refused.Error()})
		} else if err != nil {
			return err
		}
	}
	return nil
}

func titleOf(b tree.Bundle) string {
	if b.Conversation.Title != "" {
		return b.Conversation.Title
	}
	return b.Conversation.ID.String()
}

// save stores conversations in one call and counts them.
func (im *importer) save(batch []tree.Bundle, notes [][]Note) error {
	if !im.opts.DryRun {
		imported, err := im.store.Import(im.ctx, batch...)
		if err != nil {
			return err
		}
		for _, i := range imported {
			im.report.Added += i.Added
			im.report.Present += i.Present
		}
	}
	for i, b := range batch {
		im.report.count(b)
		im.report.Notes = append(im.report.Notes, notes[i]...)
	}
	return nil
}

func (r *Report) count(b tree.Bundle) {
	r.Conversations++
	replies := make(map[uuid.UUID]int, len(b.Nodes))
	for _, n := range b.Nodes {
		if n.Summary != nil {
			r.Summaries++
			continue
		}
		r.Messages++
		replies[n.ParentID]++
	}
	for _, n := range b.Nodes {
		switch {
		case n.Summary != nil:
		case replies[n.ID] == 0:
			r.Leaves++
		case replies[n.ID] > 1:
			r.BranchPoints++
		}
	}
}

// A counter adds up the bytes that were read.
type counter struct {
	read   int64
	report func(int64)
}

func (c *counter) add(n int) {
	c.read += int64(n)
	if c.report != nil && n > 0 {
		c.report(c.read)
	}
}

type reader struct {
	io.Reader
	*counter
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.add(n)
	return n, err
}

type readerAt struct {
	io.ReaderAt
	*counter
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.add(n)
	return n, err
}
