package transfer_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// zipOf is an archive whose conversations.json is what the reader gives.
func zipOf(t *testing.T, r io.Reader) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f := check.Must(w.Create("conversations.json"))(t)
	check.Must(io.Copy(f, r))(t)
	check.NoError(t, w.Close())
	return &b
}

// repeated gives a text n times between two others.
func repeated(before, text string, n int, after string) io.Reader {
	return io.MultiReader(strings.NewReader(before), strings.NewReader(strings.Repeat(text, n)), strings.NewReader(after))
}

// Blocks that stand in each other are read some levels deep: to read each again with the
// one around it would take the square of their bytes.
func TestImportOfBlocksInEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, open, text, end, after string }{
		"parts":     {``, `{"part":`, `{"text":"x"}`, `}`, ``},
		"messages":  {``, `{"type":"message","content":[`, `{"type":"text","text":"x"}`, `]}`, ``},
		"texts":     {`{"type":"text","text":`, `{"text":`, `"x"`, `}`, `}`},
		"results":   {`{"type":"tool_result","content":`, `{"value":`, `"x"`, `}`, `}`},
		"responses": {`{"type":"tool_result","content":`, `[{"functionResponse":{"response":`, `"x"`, `}}]`, `}`},
	} {
		for _, levels := range []int{5, 100} {
			block := test.before + strings.Repeat(test.open, levels) + test.text + strings.Repeat(test.end, levels) + test.after
			_, all := formattest.Read(t, strings.NewReader(`[{"uuid":"c","chat_messages":[{"uuid":"a","sender":"human","text":"q"},{"uuid":"b","sender":"assistant","content":[`+block+`]}]}]`), "claude")
			if outline := formattest.Outline(all[0]); strings.HasSuffix(strings.TrimSpace(outline), ": x") != (levels == 5) {
				t.Errorf("%s, %d levels: %s", name, levels, outline)
			}
		}
	}
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
		"lines of one session":    {repeated(`{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","head_id":null,"settings":{}}`+"\n"+`{"type":"message","id":"01990000-0000-7000-8000-0000000000c2","body":{"role":"user","content":"hi"}}`+"\n", `{"type":"?"}`+"\n"+`{"type":"message","id":"x"}`+"\n", 20_000, ""), 0},
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
			check.That(t, errors.Is(err, fault.TooLarge),
				"%v after %d conversations", err, report.Conversations)
			check.That(t, test.conversations < 0 || report.Conversations == test.conversations,
				"%d conversations came in, want %d", report.Conversations, test.conversations)
			check.That(t, len(report.Notes) <= opts.MaxNotes+1, "%d notes", len(report.Notes))
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
	check.That(t, err == nil && len(report.Notes) <= format.MaxNotes+2 && len(report.Notes) >= format.MaxNotes,
		"%v, %d notes", err, len(report.Notes))
}

// A packed file costs no more than its packed bytes may, however much comes out of it:
// what came before that is stored, and the error says what to do.
func TestImportOfPackedFilesIsBounded(t *testing.T) {
	t.Parallel()
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	one := `{"messages":[{"role":"user","content":"hi"}]}`
	for name, test := range map[string]struct {
		in            string
		conversations int // at least; no more than its bytes allow
		notes, want   string
	}{
		"one conversation many times": {lines(5000, func(int) string { return one }), 1,
			"repaired duplicate (hi) : the conversation stands in the file more than once; what is new in this one was added (", "over 1000 conversations"},
		"many conversations": {lines(50_000, func(i int) string { return fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}]}`, i) }), 1000, "", "over 1000 conversations"},
		"what says nothing":  {one + strings.Repeat("\n{}", 20_000), 1, "", "too many elements for its bytes"},
		"one long text":      {`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}]}`, 0, "", "unpacks to over 100 times its bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed := gzipped(t, test.in)
			report, err := transfer.Import(t.Context(), nil, strings.NewReader(packed), transfer.Options{Format: "messages", DryRun: true})
			check.That(t, errors.Is(err, fault.TooLarge) && strings.Contains(fmt.Sprint(err), test.want),
				"%v", err)
			check.That(t, report.Conversations >= test.conversations && report.Conversations <= 1000+len(packed)/32,
				"%d bytes gave %d conversations", len(packed), report.Conversations)
			if notes := formattest.Notes(report); !strings.HasPrefix(notes, test.notes) {
				t.Errorf("notes %.1000s", notes)
			}
		})
	}
}

// An archive's directory is refused before it is in memory, also where its end lies.
func TestImportBoundsTheDirectory(t *testing.T) {
	t.Parallel()
	told := make([]byte, 4+56+20+22)
	copy(told, "PK\x03\x04")
	copy(told[4:], "PK\x06\x06")
	binary.LittleEndian.PutUint64(told[4+32:], 1e6)
	copy(told[60:], "PK\x06\x07")
	binary.LittleEndian.PutUint64(told[60+8:], 4)
	copy(told[80:], "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff")
	var untold bytes.Buffer
	w := zip.NewWriter(&untold)
	for i := range 150 {
		check.Must(w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%065000d", i)}))(t)
	}
	check.NoError(t, w.Close())
	for in, want := range map[string]string{string(told): "the archive has 1000000 entries", untold.String(): "the directory of the archive has over"} {
		_, err := transfer.Import(t.Context(), nil, strings.NewReader(in), transfer.Options{DryRun: true})
		check.That(t, errors.Is(err, fault.TooLarge) && strings.Contains(fmt.Sprint(err), want),
			"%.200v, want %s", err, want)
	}
}

// An archive isn't to blame for the folder of temporary files.
func TestImportWithoutTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/gone")
	_, err := transfer.Import(t.Context(), nil, zipOf(t, strings.NewReader("[]")), transfer.Options{DryRun: true})
	if err == nil || fault.Refused(err) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}
