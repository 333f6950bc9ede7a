package transfer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// Coppice's own JSONL, as Export writes it. Ids stay as they are, and so does
// every byte of a sound body.

// Format reads Coppice's own JSONL, as Export writes it.
type formatCoppice struct{}

// Name implements format.Format.
func (formatCoppice) Name() string { return "coppice" }

// Marks implements format.Format.
func (formatCoppice) Marks() []string {
	return []string{"version", "type", "head_id", "settings", "body"}
}

// Recognizes implements format.Format.
func (formatCoppice) Recognizes(s shape) bool {
	return s.is("version", "0") && s.has("type", "id", "head_id", "settings")
}

// Parse implements format.Format.
func (formatCoppice) Parse(in *input, emit func(Conversation) error) error {
	f := coppiceFile{in: in, emit: emit}
	if err := eachLine(in, f.read); err != nil {
		return err
	}
	return f.flush()
}

// A coppiceFile is a file up to a line, with the conversation that the line
// belongs to.
type coppiceFile struct {
	in      *input
	emit    func(Conversation) error
	current *Conversation // nil before the first
	skip    string        // why the nodes of this conversation are left out; "" where they are not
	skipped lineSet
}

func (f *coppiceFile) read(place string, line []byte) error {
	o := readObject(line)
	f.in.took(len(line))
	if o == nil {
		f.in.note(Note{LeftOut, KindSyntax, "", place, "no JSON object; the line is left out"})
		return nil
	}
	switch kind := o.str("type"); kind {
	case "conversation":
		if err := f.flush(); err != nil {
			return err
		}
		f.begin(o, place)
	case "message", "summary":
		f.add(o, place, kind == "summary")
	default:
		f.in.note(Note{LeftOut, KindSyntax, "", place, fmt.Sprintf("a line of the unknown type %q", clip(kind))})
	}
	return nil
}

// begin starts the conversation whose line o is.
func (f *coppiceFile) begin(o object, place string) {
	f.skip = ""
	if v := o.id("version"); v != fmt.Sprint(coppiceVersion) {
		f.skip = fmt.Sprintf("this Coppice reads version %d of its format and not %q; a newer one may", coppiceVersion, clip(v))
		f.in.note(Note{LeftOut, KindConversation, cutNote(o.str("title")), place, f.skip})
		return
	}
	if !isID(o.str("id")) {
		f.skip = fmt.Sprintf("the conversation's id %q is no UUID", clip(o.str("id")))
		f.in.note(Note{LeftOut, KindConversation, cutNote(o.str("title")), place, f.skip})
		return
	}
	c := f.in.begin(0)
	c.SourceID, c.OwnIDs, c.HeadID = lowerID(o, "id"), true, lowerID(o, "head_id")
	c.Title = c.textOf(o, "title", place)
	c.Metadata = unquoted(o["metadata"])
	c.Settings = unquoted(o["settings"])
	c.CreatedAt = c.timeAt(o, place)
	if len(unquoted(o["source"])) > 0 && (json.Unmarshal(o["source"], &c.Source) != nil || !c.Source.Valid()) {
		c.Source = tree.Source{}
		c.leftOut(KindMetadata, place, "a source that can't be read; asked for again, the fork will be refused")
	}
	f.current = &c
}

// add takes the node o into the current conversation.
func (f *coppiceFile) add(o object, place string, summary bool) {
	if f.current == nil {
		if f.skip == "" {
			f.skip = "no line of a conversation stands above"
		}
		f.skipped.add(place)
		return
	}
	c := f.current
	id := lowerID(o, "id")
	if !isID(id) {
		c.leftOut(KindSyntax, place, "the id %q is no UUID; the line is left out", clip(id))
		return
	}
	if !c.more() || !c.room() {
		return
	}
	m := Message{
		SourceID: id, ParentID: lowerID(o, "parent_id"), Body: unquoted(o["body"]), Metadata: unquoted(o["metadata"]),
		Pinned: o.flag("pinned"), CreatedAt: c.timeAt(o, id),
	}
	if m.Body == nil {
		m.Body = json.RawMessage("null") // for normalizing to note: the parser leaves nothing out here
	}
	if summary {
		m.Summary = &Summary{LastSummarizedID: lowerID(o, "last_summarized_id"), PriorSummaryID: lowerID(o, "prior_summary_id"), Model: c.modelOf(o, id), Origin: c.originOf(o, id)}
		for _, raw := range c.list(o, "kept_ids", id) {
			m.Summary.KeptIDs = append(m.Summary.KeptIDs, lowerID(object{"id": raw}, "id"))
		}
	}
	c.Messages = append(c.Messages, m)
}

// flush emits the conversation that was being read.
func (f *coppiceFile) flush() error {
	if f.skipped.count > 0 {
		f.in.note(Note{LeftOut, KindConversation, "", f.skipped.String(), f.skip + "; these nodes are left out"})
		f.skipped = lineSet{}
	}
	c := f.current
	f.current = nil
	if c == nil {
		return nil
	}
	return f.emit(c.named())
}

// timeAt reads created_at, and notes where it can't.
func (c *Conversation) timeAt(o object, place string) time.Time {
	t, sound := o.time("created_at")
	if !sound {
		c.repaired(KindTime, place, "created_at %s can't be read", clipRaw(o["created_at"]))
	}
	return t
}

// textOf gives a member that is text, mended where the store can't hold it.
func (c *Conversation) textOf(o object, name, place string) string {
	text, ok := c.text(o[name], place)
	if !ok && o.has(name) {
		c.leftOut(KindMetadata, place, "%s that is no text", name)
	}
	return text
}

// modelOf gives what wrote a summary, which the store wants to know in a line
// of 200 bytes at most.
func (c *Conversation) modelOf(o object, id string) string {
	was := c.textOf(o, "model", id)
	model := cutEnd(oneLine(was), 200)
	if model == "" {
		model = "unknown"
	}
	if model != was {
		c.repaired(KindMetadata, id, "the summary's model %q became %q", clip(was), clip(model))
	}
	return model
}

// originOf gives what the file tells of an earlier import of a summary.
func (c *Conversation) originOf(o object, id string) *tree.Origin {
	raw := unquoted(o["origin"])
	if len(raw) == 0 {
		return nil
	}
	var origin tree.Origin
	if err := json.Unmarshal(raw, &origin); err != nil || origin.ImportedAt.IsZero() {
		c.leftOut(KindMetadata, id, "what the file tells of the summary's origin can't be read: %s", clip(string(raw)))
		return nil
	}
	return &origin
}

func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id != uuid.Nil
}

// lowerID writes an id the one way that Coppice does, so that ids can be
// compared. What is no UUID stays as it is.
func lowerID(o object, name string) string {
	s := o.str(name)
	if id, err := uuid.Parse(s); err == nil {
		return id.String()
	}
	return s
}

// unquoted gives an object, also one that stands in a line as a string. It is
// nil for null.
func unquoted(raw json.RawMessage) json.RawMessage {
	if s, ok := stringOf(raw); ok {
		return json.RawMessage(s)
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}
