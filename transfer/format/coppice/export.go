package coppice

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Attachments reads an attachment and its bytes.
type Attachments func(ctx context.Context, hash [sha256.Size]byte) (tree.Attachment, []byte, error)

// Export writes a conversation as Coppice's own JSONL: a line for the
// conversation, then a line for each node, parents first, then a line for each
// attachment that the messages name, in base64. So neither the writer nor the
// reader has to hold more than a line. Only the tenant is lost, and the time of the
// last change, because the receiving store decides both. Several files may be put
// together, one after the other.
//
// Bodies, metadata and settings stand in the file byte for byte. A body that has
// line breaks between its tokens doesn't fit a line; it stands as a JSON string
// that holds it.
//
// A node's parent comes before the node, and a summary's cutoff before the summary.
func Export(ctx context.Context, c tree.Conversation, nodes iter.Seq2[tree.BundleNode, error], files Attachments, w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := writeLine(out, header(c)); err != nil {
		return err
	}
	named := &attachments{seen: map[[sha256.Size]byte]bool{}}
	for n, err := range nodes {
		if err != nil {
			return err
		}
		if err := writeLine(out, nodeLine(n)); err != nil {
			return err
		}
		named.add(n.Body)
	}
	for _, a := range named.all {
		line, err := attachmentLine(ctx, files, a)
		if err != nil {
			return err
		}
		if err := writeLine(out, line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// attachments are those that messages name, in their order, each once.
type attachments struct {
	all  []chat.Attachment
	seen map[[sha256.Size]byte]bool
}

func (as *attachments) add(body json.RawMessage) {
	if !chat.MayName(body) {
		return
	}
	for _, a := range chat.Read(body).Attachments() {
		if a.Valid && !as.seen[a.Hash] {
			as.seen[a.Hash] = true
			as.all = append(as.all, a)
		}
	}
}

// attachmentLine has null for the bytes of an attachment that the store lacks.
func attachmentLine(ctx context.Context, files Attachments, named chat.Attachment) ([]column, error) {
	stored, data, err := files(ctx, named.Hash)
	if errors.Is(err, fault.NotFound) {
		stored.Name, err = named.Name, nil
	}
	return []column{{"type", "attachment"}, {"hash", hex.EncodeToString(named.Hash[:])}, {"name", stored.Name}, {"data", inBase64(data)}}, err
}

// inBase64 are bytes that stand in a line as base64, and null if there are none.
type inBase64 []byte

func (b inBase64) write(w *bufio.Writer) {
	if b == nil {
		w.WriteString("null")
		return
	}
	w.WriteByte('"')
	enc := base64.NewEncoder(base64.StdEncoding, w)
	enc.Write(b)
	enc.Close()
	w.WriteByte('"')
}

// coppiceVersion is of the format. A reader refuses a later one than it knows.
const version = 1

// coppiceTime keeps every digit that Postgres does.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// A member is one name and value of a line's JSON object. Lines are put
// together by hand because encoding/json would change the bytes of a body.
type column struct {
	name  string
	value any // json.RawMessage: written as verbatim says; inBase64: as it says; any other by encoding/json
}

func header(c tree.Conversation) []column {
	line := []column{
		{"type", "conversation"},
		{"version", version},
		{"id", c.ID},
		{"title", c.Title},
		{"created_at", c.CreatedAt.UTC().Format(timeLayout)},
		{"head_id", orNull(c.HeadID)},
		{"metadata", c.Metadata},
		{"settings", c.Settings},
	}
	if c.Archived {
		line = append(line, column{"archived", true})
	}
	if c.Pinned {
		line = append(line, column{"pinned", true})
	}
	if len(c.Tags) > 0 {
		line = append(line, column{"tags", c.Tags})
	}
	if c.Source != (tree.Source{}) {
		line = append(line, column{"source", c.Source})
	}
	return line
}

func nodeLine(n tree.BundleNode) []column {
	kind := tree.KindMessage
	if n.Summary != nil {
		kind = tree.KindSummary
	}
	line := []column{
		{"type", kind},
		{"id", n.ID},
		{"parent_id", orNull(n.ParentID)},
		{"created_at", n.CreatedAt.UTC().Format(timeLayout)},
	}
	if s := n.Summary; s != nil {
		line = append(line,
			column{"last_summarized_id", s.LastSummarizedID},
			column{"prior_summary_id", orNull(s.PriorSummaryID)},
			column{"kept_ids", append([]uuid.UUID{}, s.KeptIDs...)},
			column{"model", s.Model},
		)
		if s.Origin != nil {
			line = append(line, column{"origin", json.RawMessage(s.Origin.AppendJSON(nil))})
		}
	}
	if n.Pinned {
		line = append(line, column{"pinned", true})
	}
	if n.Rating != 0 {
		line = append(line, column{"rating", n.Rating})
	}
	if n.Label != "" {
		line = append(line, column{"label", n.Label})
	}
	if n.Note != "" {
		line = append(line, column{"note", n.Note})
	}
	if n.Metadata != nil {
		line = append(line, column{"metadata", n.Metadata})
	}
	if n.Reasoning != "" {
		line = append(line, column{"reasoning", n.Reasoning})
	}
	if n.Graft != nil {
		line = append(line, column{"grafted", n.Graft})
	}
	return append(line, column{"body", n.Body})
}

// orNull stands null for an id that isn't there.
func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func writeLine(w *bufio.Writer, line []column) error {
	w.WriteByte('{')
	for i, m := range line {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(`"` + m.name + `":`)
		if long, ok := m.value.(inBase64); ok {
			long.write(w)
			continue
		}
		value, err := memberValue(m.value)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		w.Write(value)
	}
	_, err := w.WriteString("}\n") // a bufio.Writer remembers the first error
	return err
}

func memberValue(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		if raw == nil {
			return []byte("null"), nil
		}
		if verbatim(raw) {
			return raw, nil
		}
		v = string(raw)
	}
	return chat.Marshal(v)
}

// verbatim tells whether an object can stand in a line and come out of it with
// the same bytes.
func verbatim(raw json.RawMessage) bool {
	return len(raw) > 1 && raw[0] == '{' && raw[len(raw)-1] == '}' && !bytes.ContainsAny(raw, "\r\n")
}
