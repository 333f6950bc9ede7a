package pdf

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/attach/pdf/pdftest"
	"github.com/coppice-chat/coppice/internal/check"
)

const most = 1 << 20

// TestText reads the text of pages, in their order.
func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pages []string
		want  string
	}{
		{[]string{"Hazel & ash", "Second page\nwith two lines"}, "Hazel & ash\n\nSecond page\nwith two lines"},
		{[]string{"Größe: 5 µm", "", "  é  "}, "Größe: 5 µm\n\né"},
		{[]string{""}, ""},
	} {
		got, err := Text(t.Context(), pdftest.Pages(test.pages...), most)
		check.That(t, got == test.want && err == nil, "%q: %q, %v", test.pages, got, err)
	}
}

// packed is a content stream that is small in the file: one content, so many times.
// It is compressed once, because to compress gigabytes takes minutes under the race
// detector. It has no checksum, which PDFium doesn't ask for.
func packed(t *testing.T, content []byte, times int) string {
	t.Helper()
	var once bytes.Buffer
	w := check.Must(flate.NewWriter(&once, flate.BestSpeed))(t)
	check.Must(w.Write(content))(t)
	if err := w.Flush(); err != nil { // to a whole byte, so that any block can follow
		t.Fatal(err)
	}
	stream := "\x78\x01" + strings.Repeat(once.String(), times) + "\x03\x00" // a header, the blocks, an empty last one
	return pdftest.Stream("/Filter /FlateDecode", stream)
}

const (
	catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	onePage = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
	page    = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 5 0 R >> /XObject << /X 4 0 R >> >> /Contents 4 0 R >>"
	font    = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
)

// TestHostile reads files that somebody made to harm. Each ends in an error of the
// file, or in what little text it has, and a sound PDF can be read after it.
func TestHostile(t *testing.T) {
	t.Parallel()
	say := []byte("BT /F 12 Tf " + strings.Repeat("0 -14 Td (All work and no play) Tj ", 100_000))
	var kids strings.Builder
	for range 1_000_000 {
		kids.WriteString("3 0 R ")
	}
	for name, test := range map[string]struct {
		data []byte
		want error // nil: read
	}{
		"nothing but the mark": {[]byte("%PDF-1.7\n"), ErrDamaged},
		"garbage":              {[]byte("%PDF-1.7\n" + strings.Repeat("\x00\xff<<>>obj", 10_000)), ErrDamaged},
		"cut off":              {pdftest.Pages(strings.Repeat("x\n", 50))[:150], ErrDamaged},
		"no pages":             {pdftest.File(catalog, "<< /Type /Pages /Kids [] /Count 0 >>"), ErrDamaged},
		"a page is the root":   {pdftest.File(catalog, "<< /Type /Pages /Kids [2 0 R] /Count 1 >>"), ErrDamaged},
		"a million pages":      {pdftest.File(catalog, "<< /Type /Pages /Kids ["+kids.String()+"] /Count 1000000 >>", page, pdftest.Stream("", ""), font), ErrTooLong},
		"pages that aren't":    {pdftest.File(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 2147483647 >>", page, pdftest.Stream("", ""), font), nil},
		"encrypted": {pdftest.FileWith("/Encrypt 2 0 R /ID [<00> <00>]", catalog,
			"<< /Filter /Standard /V 1 /R 2 /O <"+strings.Repeat("41", 32)+"> /U <"+strings.Repeat("42", 32)+"> /P -44 >>"), ErrEncrypted},
		"much text":                {pdftest.File(catalog, onePage, page, packed(t, say, 1), font), ErrTooLong},
		"a stream of many bytes":   {pdftest.File(catalog, onePage, page, packed(t, make([]byte, 1<<20), 1000), font), nil},
		"a form within itself":     {pdftest.File(catalog, onePage, page, pdftest.Stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >>", "/X Do /X Do"), font), nil},
		"nested arrays":            {pdftest.File(catalog, onePage, page, pdftest.Stream("", strings.Repeat("[", 1_000_000)), font), nil},
		"nested dictionaries":      {pdftest.File(catalog, onePage, strings.Repeat("<< /A ", 100_000)+strings.Repeat(">>", 100_000), pdftest.Stream("", ""), font), nil},
		"nested states":            {pdftest.File(catalog, onePage, page, packed(t, []byte(strings.Repeat("q ", 1000)), 1000), font), nil},
		"a length of itself":       {pdftest.File(catalog, onePage, page, "<< /Length 4 0 R >>\nstream\nx\nendstream", font), nil},
		"an object that is itself": {pdftest.File("1 0 R", "2 0 R", "3 0 R"), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Text(t.Context(), test.data, most)
			counted := name == "a million pages" // before any is read
			check.That(t, errors.Is(err, test.want) || !counted && errors.Is(err, ErrTooMuch),
				"%d bytes: %.60q, %v; want %v", len(test.data), got, err, test.want)
			if got, err := Text(t.Context(), pdftest.Pages("Hazel"), most); got != "Hazel" || err != nil {
				t.Errorf("after it: %q, %v", got, err)
			}
		})
	}
}

// TestStops ends a PDF in the middle, when its time is over or nobody waits for it.
func TestStops(t *testing.T) {
	t.Parallel()
	// Twelve forms, each of which shows the next one ten times.
	objects := []string{catalog, onePage, "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /XObject << /X 5 0 R >> >> /Contents 4 0 R >>", pdftest.Stream("", "/X Do")}
	for range 12 {
		objects = append(objects, pdftest.Stream(fmt.Sprintf("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >>", len(objects)+2), strings.Repeat("/X Do ", 10)))
	}
	long := pdftest.File(append(objects, pdftest.Stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", "0 0 m 1 1 l S"))...)
	if _, err := text(t.Context(), long, 1<<30, time.Nanosecond); !errors.Is(err, errTime) || !errors.Is(err, ErrTooMuch) {
		t.Errorf("without time: %v", err)
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
	check.Fails(Text(ctx, long, 1<<30))(t, "without anybody who waits", gone)
}

// FuzzText reads any bytes, and PDFs whose pages and objects they are.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "BT /F 12 Tf (x) Tj ET", "/X Do", "[[[[", "<< /Length 9999999999 >> stream"} {
		f.Add([]byte(seed))
	}
	f.Add(pdftest.Pages("Hazel", "Ash"))
	if _, err := Text(f.Context(), pdftest.Pages("Hazel"), most); err != nil { // which compiles PDFium, and takes longer than a fuzzer waits
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{
			data,
			append([]byte("%PDF-1.7\n"), data...),
			pdftest.File(catalog, onePage, page, pdftest.Stream("", string(data)), font),
			pdftest.File(catalog, onePage, page, string(data), font),
		} {
			got, err := Text(t.Context(), file, 1<<12)
			if err != nil {
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrEncrypted) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrTooMuch) {
					t.Fatalf("%q: %v", file, err)
				}
				continue
			}
			check.Need(t, len(got) <= 1<<12 && utf8.ValidString(got) && !strings.ContainsAny(got, "\x00\r\x02"),
				"%q: %q", file, got)
		}
	})
}

// Example reads an attachment that is a PDF of two pages.
func Example() {
	content, err := attach.Read(context.Background(), pdftest.Pages("Hazel is cut every seven years.", "Oak is cut every thirty."))
	fmt.Println(content.MediaType, err)
	fmt.Println(content.Text)
	// Output:
	// application/pdf <nil>
	// Hazel is cut every seven years.
	//
	// Oak is cut every thirty.
}

// The PDFium of the program is that of the module's version.
func TestPackedIsTheModules(t *testing.T) {
	t.Parallel()
	dir := check.Must(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klippa-app/go-pdfium").Output())(t)
	want := check.Must(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "webassembly", "pdfium.wasm")))(t)
	if *check.Update {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := w.Write(want); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		check.NoError(t, os.WriteFile("pdfium.wasm.gz", b.Bytes(), 0o644))
		t.Skip("written; run the test again without -update")
	}
	if got, err := unpack(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("pdfium.wasm.gz has %d bytes, %v, and the module %d: run this test with -update", len(got), err, len(want))
	}
}
