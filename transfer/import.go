package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/normalize"
	"github.com/coppice-chat/coppice/tree"
)

// A Store stores the conversations of an import. [Into] makes one of a *tree.Store.
type Store interface {
	// Import stores the bundles in one transaction: all of them or, with an
	// error, none. What is stored already stays as it is.
	Import(ctx context.Context, bundles ...tree.Bundle) ([]tree.Imported, error)

	// ImportID returns the id of a conversation that is known by a name: the same
	// id each time. former is the id that earlier versions gave it.
	ImportID(ctx context.Context, name string, former uuid.UUID) (uuid.UUID, error)

	// AddAttachment stores an attachment, and tells whether it wasn't there.
	AddAttachment(ctx context.Context, name string, data []byte) (a tree.Attachment, created bool, err error)

	// Attachments returns which of these there are.
	Attachments(ctx context.Context, hashes ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error)
}

// Into returns the Store that stores into s.
func Into(s *tree.Store) Store { return into{s} }

type into struct{ *tree.Store }

func (s into) AddAttachment(ctx context.Context, name string, data []byte) (tree.Attachment, bool, error) {
	return s.Store.Attachments().Add(ctx, name, data)
}

func (s into) Attachments(ctx context.Context, hashes ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	return s.Store.Attachments().All(ctx, hashes...)
}

// Options change what Import does. The zero value is valid.
type Options struct {
	Formats  []format.Format // that a file may be of; nil: All
	Format   string          // the name of one of them; "": recognized from the content
	TenantID string          // whose the store is; "": tree.DefaultTenant
	// PublicIDs derives ids from the file and the tenant alone. They are then the
	// same in every installation, and anybody can compute them. Without it, the
	// store makes the ids. A dry run without a store always uses public ids.
	PublicIDs bool
	// Bounds for files that nobody vouches for. One that goes beyond them ends in
	// a fault.TooLarge, but for the notes, of which the report then counts the rest.
	MaxConversationBytes int64 // of one conversation, or of one attachment in base64; 0: any number
	MaxBytes             int64 // of all that comes out of the file, unpacked; 0: any number
	MaxNotes             int   // of 400 bytes on average; 0: 50,000

	DropSummaries bool // leave summaries out: nobody checked their texts, and contexts are then made of the messages

	DryRun   bool             // read, check and report, but store nothing
	Workers  int              // calls of the store at once, if it takes several, as a *tree.Store over a pool does; 0: one after the other
	Progress func(read int64) // called now and then with the bytes read so far; nil for none
}

// A Report says what Import found and did. Added, Present and Attached stay 0 in a
// dry run.
// A conversation that occurs more than once in the file counts once, as its
// largest occurrence, and a note that comes up more than once stands there once and
// says how often.
type Report struct {
	Format        string        `json:"format"`
	Conversations int           `json:"conversations"`
	Messages      int           `json:"messages"` // without summaries
	format.Tally                // of the file's nodes; those of a conversation as often as it occurs
	Summaries     int           `json:"summaries"`
	Dropped       int           `json:"summaries_dropped"` // left out because of Options.DropSummaries, and not among Summaries
	BranchPoints  int           `json:"branch_points"`     // messages that two or more reply to
	Leaves        int           `json:"leaves"`            // messages that none replies to
	Added         int           `json:"added"`             // nodes stored
	Present       int           `json:"present"`           // nodes that were stored before
	Attachments   int           `json:"attachments"`       // pictures and files that the file brings, each once
	Attached      int           `json:"attachments_added"` // of these, stored
	Notes         []format.Note `json:"notes"`
	First         uuid.UUID     `json:"-"` // the first conversation that was stored, or would be
}

// Codes of the errors of a file. Those of kind fault.Invalid are about what is in
// it; a file beyond the bounds, of Options or of what its bytes may cost, is a
// fault.TooLarge.
const (
	CodeEmpty    = "empty_file"        // there is nothing in it
	CodeFormat   = "unknown_format"    // no format finds a message in it, or there is no Options.Format
	CodeTooLarge = format.CodeTooLarge // it is beyond the bounds
	CodeFile     = format.CodeFile     // it can't be read on
)

// Import reads conversations from r and stores them. It recognizes the format
// from the content, and a zip archive's format from the files in it. A file may
// be packed by gzip, and may be in UTF-8, UTF-16 or UTF-32.
//
// Import stores every sound part of a file. The report says what was stored, and
// names each thing that was repaired or left out. With an error, the report is
// about what was stored before the error. A second import of the same file adds
// nothing. An import of a later export of the same conversations adds what is
// new. In a dry run store may be nil.
//
// Memory is bounded by 32 MB and eight times the bytes of the largest
// conversation, or four times those of the largest attachment, besides the notes and
// 80 bytes for each conversation. A zip archive that can't be read at any offset is
// copied to a temporary file. Import stores several small conversations at a time, and
// reads on while the store works. After the end of the context it reads no more of the
// file, and stops within a few hundred messages.
//
// What a file may cost grows with its bytes as they come in, packed or not: that
// bounds what is unpacked, its elements, its conversations, and the steps taken for
// them. No export comes near these bounds.
//
// An error of the file has one of the codes above, and its detail says where the
// file is unsound. Another error, of the store or of the temporary file, is returned
// unchanged.
func Import(ctx context.Context, store Store, r io.Reader, opts Options) (_ Report, err error) {
	defer fault.Wrap(&err, "transfer.Import")
	im := newImporter(ctx, store, opts)
	err = im.file(r)
	report, saveErr := im.finish()
	if saveErr != nil {
		return report, saveErr // of which the reader's error is at most the consequence
	}
	if err == nil {
		err = im.nothing()
	}
	return report, ofFile(err)
}

// ofFile makes whatever ended the reading of a file an error of the file. Its
// detail is the whole text, with the format and the place.
func ofFile(err error) error {
	if err == nil {
		return nil
	}
	e := fault.Error{Kind: fault.Invalid, Code: CodeFile, Detail: err.Error(), Err: err}
	var known *fault.Error
	if errors.As(err, &known) {
		e.Kind, e.Code = known.Kind, known.Code
	}
	return &e
}

// An importer is one run of Import.
type importer struct {
	opts   Options
	format string
	files  files
	bounds *bounded
	saver

	batch []entry // for the next call of the store
	nodes int     // of all of them
	bytes int     // that all of them take

	archive *archive // nil of another file

	found int // conversations with messages
	own   int // of Coppice's own, without
	dense int // conversations that would cost too much

	others map[string][]trial // formats of elements, by the members that these have
	tried  int                // elements that all formats were tried on
}

// batchNodes is how many nodes go to the store in one call, if conversations
// are small. A larger one goes alone. More save few commits, and leave the
// workers of a small file without work.
const batchNodes = 250

// stepsPerKnown is how many steps each message of a conversation counts that stands in
// the file once more.
const stepsPerKnown = 16

func newImporter(ctx context.Context, store Store, opts Options) *importer {
	if opts.Formats == nil {
		opts.Formats = All()
	}
	im := &importer{opts: opts, others: map[string][]trial{}, files: newFiles(), saver: newSaver(ctx, store, opts)}
	im.bounds = newBounded(opts, im.stopped)
	return im
}

// file reads what may be packed.
func (im *importer) file(r io.Reader) error {
	progress := &counter{report: im.opts.Progress}
	im.bounds.sent = func() int64 { return progress.read }
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && isZip(f) {
			return im.zip(readerAt{f, progress}, info.Size())
		}
	}
	in := bufio.NewReaderSize(reader{r, progress, im.stopped}, format.ReadBytes)
	head, _ := in.Peek(len(zipMagic)) // longer than gzipMagic
	switch {
	case string(head) == zipMagic:
		return im.spooledZip(in)
	case strings.HasPrefix(string(head), gzipMagic):
		unpacked, err := newGunzip(in, im.note)
		if err != nil {
			return err
		}
		return im.stream(unpacked)
	}
	return im.stream(in)
}

// stream reads a file of one format.
func (im *importer) stream(r io.Reader) error {
	r, err := asUTF8(r)
	if err != nil {
		return err
	}
	head, f, member, err := recognize(im.ctx, r, im.opts.Format, im.opts.Formats)
	if err != nil {
		return err
	}
	im.format = f.Name()
	im.bounds.from = io.MultiReader(bytes.NewReader(head), r)
	im.bounds.next()
	return im.parse(im.bounds, f, member, im.other)
}

// parse reads the conversations of a file, or of one element of it, as a format's.
func (im *importer) parse(r io.Reader, f format.Format, member string, other func(string, json.RawMessage) (bool, error)) error {
	in := format.NewInput(im.ctx, r, im.note)
	in.Member, in.Attached, in.Other = member, im.attachment, other
	if im.archive != nil {
		in.File = im.archived
	}
	err := f.Parse(in, func(c format.Conversation) error { return im.conversation(f.Name(), in, c) })
	im.counts.tally(in.Tally())
	if err == nil {
		err = in.Stopped()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// maxTried is how many elements of a file all formats are tried on.
const maxTried = 100

// other reads an element of the file in which its format finds no message as the
// conversation of another format, and tells whether it is one. It tries the formats of
// elements with the same members, or else all.
func (im *importer) other(place string, raw json.RawMessage) (bool, error) {
	if im.opts.Format != "" {
		return false, nil
	}
	sample := format.SampleOf(raw[:min(len(raw), headBytes)])
	shape := sample.Describe()
	best := trial{format: im.opts.Formats[0]}
	for _, known := range im.others[shape] {
		best = bestOf([]trial{best, try(im.ctx, sample, known.format, known.member)})
	}
	if best.weight() == 0 {
		if im.tried == maxTried {
			return false, nil
		}
		im.tried++
		if best = bestOf(tryAll(im.ctx, sample, im.opts.Formats)); best.weight() == 0 || best.format.Name() == im.format {
			return false, nil
		}
		im.others[shape] = append(im.others[shape], trial{format: best.format, member: best.member})
	}
	im.note(format.Note{Action: format.Repaired, Kind: format.KindConversation, Place: place, Detail: fmt.Sprintf("no conversation of %s, and read as one of %s", im.format, best.format.Name())})
	return true, im.parse(bytes.NewReader(raw), best.format, best.member, nil)
}

// note takes a note on the file, behind those on the conversation before it.
func (im *importer) note(n format.Note) {
	im.notes.add(2*im.bounds.conversations+1, n)
}

// tooDense notes that the conversation is left out.
func (im *importer) tooDense(c *format.Conversation) error {
	im.dense++
	n := c.Tally().Nodes
	im.counts.tally(format.Tally{Nodes: n, LeftOut: n})
	im.note(format.Note{Action: format.LeftOut, Kind: format.KindTooLarge, Conversation: c.Name(), Detail: c.TooDense()})
	return im.stopped()
}

// conversation takes one conversation of the file.
func (im *importer) conversation(formatName string, in *format.Input, c format.Conversation) error {
	if err := im.bounds.conversation(); err != nil {
		return err
	}
	if err := in.Stopped(); err != nil {
		return err
	}
	if c.TooDense() != "" {
		return im.tooDense(&c)
	}
	id, err := im.identify(&c, formatName)
	if err != nil {
		im.stop(err)
		return err
	}
	name := c.Name()
	b, ids, notes := normalize.Bundle(&c, id, formatName)
	if err := in.Stopped(); err != nil {
		return err
	}
	if len(b.Nodes) == 0 && !c.OwnIDs && c.TooDense() == "" {
		im.empty(name, c.Tally(), notes)
		return im.stopped()
	}
	if len(b.Nodes) > 0 {
		im.found++
	} else {
		im.own++
	}
	before, again := im.counts.begin(id)
	if again {
		c.Steps(stepsPerKnown * int(before.messages)) // the store reads them all again
	}
	if c.TooDense() != "" {
		return im.tooDense(&c)
	}
	dropped := 0
	if im.opts.DropSummaries {
		ids, dropped = dropSummaries(&b, ids)
	}
	if again {
		notes = append(notes, format.Note{Action: format.Repaired, Kind: format.KindDuplicate, Conversation: name, Detail: "the conversation stands in the file more than once; what is new in this one was added"})
	}
	e := entry{Bundle: b, at: 2 * im.bounds.conversations, notes: notes, sourceIDs: ids, bytes: bytesOf(b), again: again, dropped: dropped}
	im.counts.tally(c.Tally())
	if im.opts.DryRun {
		missing, err := im.missing(e, im.files.sound)
		if err != nil {
			im.stop(err)
			return err
		}
		e.notes = append(e.notes, missing...)
	}
	if im.nodes+len(b.Nodes) > batchNodes || im.bytes+e.bytes > aheadBytes {
		if err := im.flush(); err != nil {
			return err
		}
	}
	if again && !slices.ContainsFunc(im.batch, func(e entry) bool { return e.Conversation.ID == id }) {
		im.wait() // until the first is stored
	}
	im.batch = append(im.batch, e)
	im.nodes += len(b.Nodes)
	im.bytes += e.bytes
	if e.bytes > aheadBytes {
		if err := im.flush(); err != nil {
			return err
		}
		im.wait() // before the next takes memory too
	}
	return im.stopped()
}

// empty notes a conversation of whose nodes none is a message.
func (im *importer) empty(name string, t format.Tally, notes []format.Note) {
	why := "it has no messages"
	if t.Nodes > t.Aside {
		why = "none of its " + format.Counted(t.Nodes-t.Aside, "node") + " is a message"
	} else if t.Nodes == 0 { // it is an empty node itself
		t = format.Tally{Nodes: 1, Aside: 1}
	}
	im.counts.tally(t)
	im.notes.add(2*im.bounds.conversations, append(notes, format.Note{Action: format.LeftOut, Kind: format.KindConversation, Conversation: name, Detail: why})...)
}

// nothing is the error of a file in which the format found no message; nil of another.
func (im *importer) nothing() error {
	var why []string
	for _, n := range im.notes.all() {
		if detail := format.Clip(n.Detail); n.Action == format.LeftOut && len(why) < 3 && !slices.Contains(why, detail) {
			why = append(why, detail)
		}
	}
	switch {
	case im.found > 0 || im.own > 0 && im.counts.sum.LeftOut == 0 || im.format == "":
		return nil
	case im.dense > 0:
		return tooLarge("no conversation came in: %s", strings.Join(why, "; "))
	}
	hint := ""
	if im.opts.Format != "" {
		hint = ". Leave the format out, and the content tells it"
	}
	return fault.New(fault.Invalid, CodeFormat, "", "%s finds no message in the file (%s)%s", im.format, cmp.Or(strings.Join(why, "; "), "and nothing else"), hint)
}

// identify gives the id of a conversation: its own in a file of Coppice's, else
// the one that the store wants for it.
func (im *importer) identify(c *format.Conversation, formatName string) (uuid.UUID, error) {
	public := publicID(c, formatName, im.opts.TenantID)
	if ownID(c) || im.opts.PublicIDs || im.store == nil {
		return public, nil
	}
	return im.store.ImportID(im.ctx, conversationName(c, formatName), public)
}

// dropSummaries takes the summaries out of a bundle, and their ids out of those of
// its nodes.
func dropSummaries(b *tree.Bundle, sourceIDs []string) (left []string, dropped int) {
	nodes := b.Nodes[:0]
	for i, n := range b.Nodes {
		if n.Summary != nil {
			dropped++
			continue
		}
		nodes = append(nodes, n)
		if sourceIDs != nil {
			left = append(left, sourceIDs[i])
		}
	}
	b.Nodes = nodes
	return left, dropped
}

// bytesOf is about what a bundle takes in memory.
func bytesOf(b tree.Bundle) (n int) {
	for _, node := range b.Nodes {
		n += 200 + len(node.Body) + len(node.Reasoning) + len(node.Metadata)
	}
	return n
}

// flush hands the batch to the saver.
func (im *importer) flush() error {
	batch := im.batch
	im.batch, im.nodes, im.bytes = nil, 0, 0
	return im.save(batch)
}

// finish stores what is left, waits for what is under way, and gives the whole
// report.
func (im *importer) finish() (Report, error) {
	err := im.flush()
	im.wait()
	report := im.total()
	report.Format, report.Attachments, report.Attached = im.format, im.files.found, im.files.stored
	report.Notes = im.notes.all()
	if stopped := im.stopped(); stopped != nil {
		err = stopped
	}
	im.stop(nil)
	return report, err
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
	stopped func() error
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.stopped(); err != nil {
		return 0, err
	}
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
