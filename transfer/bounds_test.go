package transfer_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// zipOf is an archive whose conversations.json is what the reader gives.
func zipOf(t *testing.T, r io.Reader) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// repeated gives a text n times between two others.
func repeated(before, text string, n int, after string) io.Reader {
	return io.MultiReader(strings.NewReader(before), strings.NewReader(strings.Repeat(text, n)), strings.NewReader(after))
}

// What a file holds ends where it may hold no more, however small it is packed.
func TestImportBounds(t *testing.T) {
	t.Parallel()
	const good = `{"uuid":"a","name":"A","chat_messages":[{"uuid":"m","sender":"human","text":"hi"}]}`
	opts := transfer.Options{MaxConversationBytes: 256 << 10, MaxBytes: 2 << 20, MaxNotes: 100}
	for name, test := range map[string]struct {
		in            io.Reader
		conversations int
	}{
		"one long text":           {repeated(`[`+good+`,{"uuid":"b","name":"`, "x", 4<<20, `"}]`), 1},
		"a packed text":           {zipOf(t, repeated(`[`+good+`,{"uuid":"b","name":"`, "x", 8<<20, `"}]`)), 1},
		"white space":             {zipOf(t, repeated(`[`+good+`,`, " ", 8<<20, `]`)), 1},
		"many messages":           {zipOf(t, repeated(`[`+good+`,{"uuid":"b","chat_messages":[{}`, ",{}", 1<<20, `]}]`)), 1},
		"a line without end":      {repeated("", "x", 4<<20, ""), 0},
		"lines of one session":    {repeated(`{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","head_id":null,"settings":{}}`+"\n", `{"type":"?"}`+"\n"+`{"type":"message","id":"x"}`+"\n", 20_000, ""), 0},
		"conversations in all":    {zipOf(t, repeated("[", good+",", 50_000, good+"]")), -1},
		"what is no conversation": {repeated("["+good, ",0", 2<<20, "]"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := opts
			if name == "a line without end" {
				opts.Format = "messages"
			}
			var store formattest.Bundles
			report, err := transfer.Import(t.Context(), &store, test.in, opts)
			if !errors.Is(err, fault.TooLarge) {
				t.Errorf("%v after %d conversations", err, report.Conversations)
			}
			if test.conversations >= 0 && report.Conversations != test.conversations {
				t.Errorf("%d conversations came in, want %d", report.Conversations, test.conversations)
			}
			if len(report.Notes) > opts.MaxNotes+1 {
				t.Errorf("%d notes", len(report.Notes))
			}
		})
	}
}

// Notes beyond the limit are counted.
func TestImportNotesAreBounded(t *testing.T) {
	t.Parallel()
	var store formattest.Bundles
	report, err := transfer.Import(t.Context(), &store, repeated(`[{"uuid":"a","chat_messages":[{"uuid":"m","sender":"human","text":"hi"}]}`, ",0", 5000, "]"), transfer.Options{Format: "claude", MaxNotes: 100})
	if err != nil || report.Conversations != 1 || len(report.Notes) != 101 || !strings.Contains(report.Notes[100].Detail, "more notes") {
		t.Errorf("%v, %d conversations, %d notes", err, report.Conversations, len(report.Notes))
	}
	store = nil
	report, err = transfer.Import(t.Context(), &store, repeated(`{"uuid":"a","name":"A","chat_messages":[{"uuid":"m","sender":"human","text":"hi"}`, `,{"uuid":"x","sender":"human","text":"","updated_at":"`+strings.Repeat("0", format.BytesPerMessage)+`"}`, 20_000, "]}"), transfer.Options{Format: "claude"})
	if err != nil || len(report.Notes) > format.MaxNotes+2 || len(report.Notes) < format.MaxNotes {
		t.Errorf("%v, %d notes", err, len(report.Notes))
	}
}
