// Package pdf reads the text of PDF files. Nobody vouches for such a file, so PDFium
// reads it as WebAssembly: in memory of its own, which is bounded and given back,
// and for a bounded time. Whatever a file does to it, the program goes on. It
// reaches no file and no network, and sees one PDF only. Who imports the package
// has attachments that are PDFs read by [attach.Read].
package pdf

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/fault"
)

// Errors of a file. Any other error is the program's, or the context's.
var (
	ErrEncrypted = errors.New("it asks for a password")
	ErrDamaged   = errors.New("it is damaged")
	ErrTooMuch   = errors.New("it takes too much time or memory")
	ErrTooLong   = errors.New("it has too many pages or too much text")

	errTime = fmt.Errorf("%w: it was stopped", ErrTooMuch)
)

// MaxPages is how many pages a PDF may have.
const MaxPages = 2000

const (
	timeout   = 20 * time.Second // for one PDF, without the wait for others
	maxMemory = 256 << 20        // of PDFium, for one
	maxAtOnce = 2                // PDFs that are read at a time
	pageBytes = 64 << 10         // of a page of WebAssembly's memory
)

var (
	slots = make(chan struct{}, maxAtOnce)

	// PDFium is compiled for the first PDF, which takes some seconds, and kept. It
	// is the code alone: each PDF gets memory of its own.
	compiled = wazero.NewCompilationCache()
	starting sync.Mutex // lest two compile it
)

func init() { attach.Register("%PDF-", read) }

// read is what [attach.Read] finds of a PDF.
func read(ctx context.Context, data []byte) (attach.Content, error) {
	text, err := Text(ctx, data, attach.MaxText)
	unsupported := func(detail string) error { return fault.New(fault.Invalid, "unsupported_attachment", "", "%s", detail) }
	switch {
	case errors.Is(err, ErrEncrypted):
		err = unsupported("The PDF asks for a password. Save it without one, and send that.")
	case errors.Is(err, ErrDamaged):
		err = unsupported("The file begins like a PDF, and has no page that can be read. It is damaged: send another copy.")
	case errors.Is(err, ErrTooMuch):
		err = unsupported("The PDF takes too much time or memory to be read. Print it to a new PDF, or send its text.")
	case errors.Is(err, ErrTooLong):
		err = fault.New(fault.TooLarge, "attachment_too_large", "", "The PDF has over %d pages, or over %s of text. Send the pages that matter.", MaxPages, fault.Bytes(attach.MaxText))
	case err == nil && text == "":
		err = unsupported("The PDF has no text: its pages are pictures, as a scanner makes them. Send it with text recognized (OCR), or its pages as pictures.")
	}
	return attach.Content{MediaType: "application/pdf", Text: text}, err
}

// Text reads the text of a PDF, page after page, with a blank line between those
// that have some. It has so many bytes at most, else the error is ErrTooLong. A
// PDF whose pages are pictures has none.
func Text(ctx context.Context, data []byte, most int) (string, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return text(ctx, data, most, timeout)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func text(whole context.Context, data []byte, most int, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	inMemory, release := withMemory(ctx)
	defer release()
	pool, err := start(inMemory)
	if err != nil {
		return "", because(ctx, fmt.Errorf("pdf.Text: PDFium doesn't start: %w", err))
	}
	defer pool.Close() // with all memory
	timer := time.AfterFunc(timeout, func() { cancel(errTime) })
	defer timer.Stop()
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return "", because(ctx, fmt.Errorf("pdf.Text: PDFium has no instance: %w", err))
	}
	r := reader{pdfium: instance, most: most}
	if err := r.read(data); err != nil {
		return "", because(ctx, err)
	}
	return r.text.String(), nil
}

// because returns why PDFium was stopped, whatever it said then. Else the error is
// its own.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// zippedCode is PDFium as go-pdfium has it, gzipped, which saves 3 MB of the program. PDFium
// has the BSD licence. go test ./attach/pdf -run Packed -update writes it anew.
//
//go:embed pdfium.wasm.gz
var zippedCode []byte

// unpack returns PDFium. It is kept from the first PDF on.
var unpack = sync.OnceValues(func() ([]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(zippedCode))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zipped)
})

// start starts PDFium. What it runs ends with the context.
func start(ctx context.Context) (pdfium.Pool, error) {
	starting.Lock()
	defer starting.Unlock()
	code, err := unpack()
	if err != nil {
		return nil, err
	}
	return webassembly.InitWithWASM(webassembly.Config{
		WASM:     code,
		Context:  ctx,
		MaxTotal: 1,
		FSConfig: wazero.NewFSConfig(), // no folder; the default is the whole disk
		Stdout:   io.Discard,
		Stderr:   io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling). // for PDFium's setjmp
			WithMemoryLimitPages(maxMemory / pageBytes).
			WithCloseOnContextDone(true).
			WithCompilationCache(compiled),
	})
}

// A reader reads one PDF.
type reader struct {
	pdfium pdfium.Pdfium
	most   int
	text   strings.Builder
}

func (r *reader) read(data []byte) error {
	opened, err := r.pdfium.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return reason(err)
	}
	count, err := r.pdfium.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	switch {
	case err != nil:
		return ErrTooMuch
	case count.PageCount > MaxPages:
		return ErrTooLong
	}
	read := 0
	for i := range count.PageCount {
		page, err := r.pdfium.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: opened.Document, Index: i})
		if err = reason(err); errors.Is(err, ErrDamaged) {
			continue // with the other pages
		}
		if err != nil {
			return err
		}
		if err := r.page(page.Page); err != nil {
			return err
		}
		read++
		if _, err := r.pdfium.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: page.Page}); err != nil {
			return ErrTooMuch
		}
	}
	if read == 0 {
		return ErrDamaged
	}
	return nil
}

// reason makes PDFium's errors those of this package. Where PDFium gave none, it
// broke off: it had no more memory, or made a mistake that WebAssembly stopped.
func reason(err error) error {
	is := func(known ...error) bool {
		return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
	}
	switch {
	case err == nil:
		return nil
	case is(pdfiumerrors.ErrPassword, pdfiumerrors.ErrSecurity):
		return ErrEncrypted
	case is(pdfiumerrors.ErrUnknown, pdfiumerrors.ErrFile, pdfiumerrors.ErrFormat, pdfiumerrors.ErrPage):
		return ErrDamaged
	}
	return ErrTooMuch
}

// page adds the text of a page.
func (r *reader) page(page references.FPDF_PAGE) error {
	loaded, err := r.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: requests.Page{ByReference: &page}})
	if err != nil {
		return ErrTooMuch
	}
	count, err := r.pdfium.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	switch {
	case err != nil:
		return ErrTooMuch
	case count.Count > r.most-r.text.Len(): // each has a byte or more
		return ErrTooLong
	case count.Count > 0:
		got, err := r.pdfium.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: loaded.TextPage, Count: count.Count})
		if err != nil {
			return ErrTooMuch
		}
		r.add(got.Text)
	}
	if r.text.Len() > r.most {
		return ErrTooLong
	}
	if _, err := r.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage}); err != nil {
		return ErrTooMuch
	}
	return nil
}

// add adds what is said on a page, as text that can be stored: without the control
// characters and the marks of syllables that PDFium gives.
func (r *reader) add(said string) {
	said = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c < ' ' || c >= 0x7F && c < 0xA0 || c == 0xFFFE || c == 0xFFFF || c == 0xAD:
			return -1
		}
		return c
	}, strings.ReplaceAll(strings.ToValidUTF8(said, ""), "\r\n", "\n"))
	if said = strings.TrimSpace(said); said == "" {
		return
	}
	if r.text.Len() > 0 {
		r.text.WriteString("\n\n")
	}
	r.text.WriteString(said)
}
