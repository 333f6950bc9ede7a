// Package coppice reads and writes Coppice's own JSONL, as Export writes it. Ids
// stay as they are, and so does every byte of a sound body.
package coppice

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads Coppice's own JSONL, as Export writes it.
type Format struct{}

func (Format) Name() string { return "coppice" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	f := file{in: in, emit: emit}
	if err := in.EachLine(f.read); err != nil {
		return err
	}
	return f.flush()
}

// A coppiceFile is a file up to a line, with the conversation that the line
// belongs to.
type file struct {
	in      *format.Input
	emit    func(format.Conversation) error
	current *format.Conversation // nil before the first
	skip    string               // why the nodes of this conversation are left out; "" where they are not
	skipped format.LineSet
}

func (f *file) read(place string, line []byte) error {
	o := format.ReadObject(line)
	if o.Str("type") == "attachment" { // whose bytes the store has by then
		return f.attachment(o, place, len(line))
	}
	f.in.Took(len(line))
	if o == nil {
		f.in.NoJSON(place)
		return nil
	}
	switch kind := o.Str("type"); kind {
	case "conversation":
		if err := f.flush(); err != nil {
			return err
		}
		f.begin(o, place)
	case "message", "summary":
		f.add(o, place, kind == "summary")
	default:
		f.in.LeftOut(format.KindSyntax, place, "a line of the unknown type %q", format.Clip(kind))
	}
	return nil
}

// begin starts the conversation whose line o is.
func (f *file) begin(o format.Object, place string) {
	f.skip = ""
	if v := o.ID("version"); v != fmt.Sprint(version) {
		f.reject(o, place, fmt.Sprintf("this Coppice reads version %d of its format and not %q; a newer one may", version, format.Clip(v)))
		return
	}
	if !format.IsID(o.Str("id")) {
		f.reject(o, place, fmt.Sprintf("the conversation's id %q is no UUID", format.Clip(o.Str("id"))))
		return
	}
	c := f.in.Begin(0)
	c.SourceID, c.OwnIDs, c.HeadID = lowerID(o, "id"), true, lowerID(o, "head_id")
	c.Title = c.TextOf(o, "title", place)
	c.Metadata = unquoted(o["metadata"])
	c.Settings = unquoted(o["settings"])
	c.CreatedAt = c.Time(o, "created_at", place)
	c.Order = tree.Order{Archived: o.Flag("archived"), Pinned: o.Flag("pinned")}
	for _, raw := range c.List(o, "tags", place) {
		c.Order.Tags = append(c.Order.Tags, format.Object{"tag": raw}.Str("tag"))
	}
	if len(unquoted(o["source"])) > 0 && (json.Unmarshal(o["source"], &c.Source) != nil || !c.Source.Valid()) {
		c.Source = tree.Source{}
		c.LeftOut(format.KindMetadata, place, "a source that can't be read; asked for again, the fork will be refused")
	}
	f.current = &c
}

// reject leaves out the conversation whose line o is, with its nodes.
func (f *file) reject(o format.Object, place, why string) {
	f.skip = why
	c := f.in.Conversation()
	c.Title = o.Str("title")
	c.Reject(place, "%s", why)
}

// add takes the node o into the current conversation.
func (f *file) add(o format.Object, place string, summary bool) {
	if f.current == nil {
		if f.skip == "" {
			f.skip = "no line of a conversation stands above"
		}
		f.skipped.Add(place)
		return
	}
	c := f.current
	if !c.Node() || !c.Room() {
		return
	}
	id := lowerID(o, "id")
	if !format.IsID(id) {
		c.LeftOut(format.KindSyntax, place, "the id %q is no UUID; the line is left out", format.Clip(id))
		return
	}
	m := format.Message{
		SourceID: id, ParentID: lowerID(o, "parent_id"), Body: unquoted(o["body"]), Metadata: unquoted(o["metadata"]),
		Reasoning: c.TextOf(o, "reasoning", id), Pinned: o.Flag("pinned"), CreatedAt: c.Time(o, "created_at", id),
	}
	m.Annotation = annotationOf(c, o, id)
	if m.Body == nil {
		m.Body = json.RawMessage("null") // for normalizing to note: the parser leaves nothing out here
	}
	if summary {
		m.Summary = &format.Summary{LastSummarizedID: lowerID(o, "last_summarized_id"), PriorSummaryID: lowerID(o, "prior_summary_id"), Model: modelOf(c, o, id), Origin: originOf(c, o, id)}
		for _, raw := range c.List(o, "kept_ids", id) {
			m.Summary.KeptIDs = append(m.Summary.KeptIDs, lowerID(format.Object{"id": raw}, "id"))
		}
	} else {
		m.Graft = graftOf(c, o, id)
	}
	c.Add(m)
}

// attachment hands an attachment over. One without bytes was missing where the
// file was written. It is noted where a message names it, if it is missing here as
// well.
func (f *file) attachment(o format.Object, place string, taken int) error {
	a := format.Attachment{Name: o.Str("name"), Place: place, Taken: taken}
	hash, ok := chat.ParseHash(o.Str("hash"))
	data := o["data"]
	switch {
	case f.skip != "":
		f.skipped.Add(place)
		return nil
	case !ok:
		f.in.LeftOut(format.KindAttachment, place, "an attachment whose hash is no SHA-256 in lower-case hex")
		return nil
	case string(data) == "null" || f.in.Attached == nil:
		return nil
	}
	if text, ok := format.StringOf(data); ok && bytes.IndexByte(data, '\\') >= 0 {
		data = []byte(`"` + text + `"`)
	}
	if !format.IsString(data) || len(data) < 2 {
		f.in.LeftOut(format.KindAttachment, place, "the attachment %q has no data", format.Clip(a.Name))
		return nil
	}
	a.Hash, a.Data = hash, data[1:len(data)-1]
	n, err := base64.StdEncoding.Decode(a.Data, a.Data) // in its place: it is large
	if a.Data = a.Data[:n]; err != nil || sha256.Sum256(a.Data) != hash {
		f.in.LeftOut(format.KindAttachment, place, "the data of the attachment %q isn't what its hash says; export it again, or upload the file", format.Clip(a.Name))
		return nil
	}
	return f.in.Attached(a)
}

// flush emits the conversation that was being read.
func (f *file) flush() error {
	if f.skipped.Count > 0 {
		f.in.LeaveOut(f.skipped, f.skip+"; these nodes are left out")
		f.skipped = format.LineSet{}
	}
	c := f.current
	f.current = nil
	if c == nil {
		return nil
	}
	return f.emit(*c)
}

// modelOf gives what wrote a summary, which the store wants to know in a line
// of 200 bytes at most.
func modelOf(c *format.Conversation, o format.Object, id string) string {
	was := c.TextOf(o, "model", id)
	model := format.CutEnd(format.OneLine(was), 200)
	if model == "" {
		model = "unknown"
	}
	if model != was {
		c.Repaired(format.KindMetadata, id, "the summary's model %q became %q", format.Clip(was), format.Clip(model))
	}
	return model
}

// originOf gives what the file tells of an earlier import of a summary.
func originOf(c *format.Conversation, o format.Object, id string) *tree.Origin {
	raw := unquoted(o["origin"])
	if len(raw) == 0 {
		return nil
	}
	var origin tree.Origin
	if err := json.Unmarshal(raw, &origin); err != nil || origin.ImportedAt.IsZero() {
		c.LeftOut(format.KindMetadata, id, "what the file tells of the summary's origin can't be read: %s", format.Clip(string(raw)))
		return nil
	}
	return &origin
}

// graftOf gives what the file tells of the branch from which a message was brought.
func graftOf(c *format.Conversation, o format.Object, id string) *tree.Graft {
	raw := unquoted(o["grafted"])
	if len(raw) == 0 {
		return nil
	}
	var g tree.Graft
	if err := json.Unmarshal(raw, &g); err != nil || !g.Valid() {
		c.LeftOut(format.KindMetadata, id, "what the file tells of the branch that the message was brought from can't be read: %s", format.Clip(string(raw)))
		return nil
	}
	return &g
}

// annotationOf gives what readers said of a message.
func annotationOf(c *format.Conversation, o format.Object, id string) tree.Annotation {
	a := tree.Annotation{Label: c.TextOf(o, "label", id), Note: c.TextOf(o, "note", id)}
	if raw := o["rating"]; raw != nil && json.Unmarshal(raw, &a.Rating) != nil {
		c.LeftOut(format.KindMetadata, id, "the rating %s, which is neither 1 nor -1", format.Clip(string(raw)))
	}
	return a
}

// lowerID writes an id the one way that Coppice does, so that ids can be
// compared. What is no UUID stays as it is.
func lowerID(o format.Object, name string) string {
	s := o.Str(name)
	if id, err := uuid.Parse(s); err == nil {
		return id.String()
	}
	return s
}

// unquoted gives an object, also one that stands in a line as a string. It is
// nil for null.
func unquoted(raw json.RawMessage) json.RawMessage {
	if s, ok := format.StringOf(raw); ok {
		return json.RawMessage(s)
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}
