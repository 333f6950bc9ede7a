package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

func createImport(r *Request) (Answer, error) {
	opts, err := r.importOptions()
	if err != nil {
		return nil, err
	}
	if err := r.checkFileType(importTypes); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	source := &bounded{from: http.MaxBytesReader(nil, io.NopCloser(r.Body), opts.MaxBytes)}
	source.ended = func(size int64) {
		limit := r.Timeout() + time.Duration(size)*importTimePerMiB>>20
		timer := time.AfterFunc(limit, func() { stop(&tooLate{limit}) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	store := &watched{to: r.Store()}
	report, err := transfer.Import(ctx, store, source, opts)
	if err != nil {
		return nil, importProblem(err, report, source.err, store.err, opts.MaxBytes)
	}
	answered := importReport{Report: report}
	if report.Added+report.Present > 0 {
		answered.FirstID = &report.First
	}
	body, err := json.Marshal(answered)
	return answer{status: http.StatusOK, body: body}, err
}

// importTimePerMiB is how long an import may go on after the last byte of its file has
// come, for each MiB of it, above the time of any request: a file that is packed ten
// to one has it for 10 MiB.
const importTimePerMiB = time.Minute

// tooLate is the error of an import that goes on for too long after its file has come.
type tooLate struct{ limit time.Duration }

func (e *tooLate) Error() string {
	return fmt.Sprintf("the import went on for %s after its file had come", e.limit)
}

// importTypes are the content types of files to import. curl's --data-binary says the
// one of a form of every file.
var importTypes = []string{"application/json", "application/jsonl", "application/x-ndjson", "application/zip", "application/x-zip-compressed",
	"application/gzip", "application/x-gzip", "application/octet-stream", "application/x-www-form-urlencoded", "text/"}

// checkFileType refuses a body that its Content-Type says is no file of these types.
// A type that ends in / stands for all that begin with it.
func (r *Request) checkFileType(types []string) error {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err == nil && slices.ContainsFunc(types, func(t string) bool { return kind == t || strings.HasSuffix(t, "/") && strings.HasPrefix(kind, t) }) {
		return nil
	}
	list := strings.ReplaceAll(strings.Join(types, ", ")+",", "/,", "/*,")
	return problemf(CodeUnsupportedMediaType, "", "Send the file itself as the body, not in a form, without a Content-Type or with one of these: %s.", strings.TrimSuffix(list, ","))
}

// importOptions reads what the query says of an import.
func (r *Request) importOptions() (opts transfer.Options, err error) {
	cfg := &r.server.cfg
	opts = transfer.Options{
		Format: deref(r.Query("format")), TenantID: r.who.Tenant,
		MaxConversationBytes: cfg.MaxConversation, MaxBytes: cfg.MaxImportBytes, MaxNotes: maxImportNotes, Workers: importWorkers,
	}
	switch deref(r.Query("dry_run")) {
	case "", "false":
	case "true":
		opts.DryRun = true
	default:
		return opts, problemf(CodeInvalidParameter, "dry_run", "This must be true or false.")
	}
	given := r.Query("summaries")
	asked := deref(given)
	switch {
	case given != nil && asked != "keep" && asked != "drop":
		return opts, problemf(CodeInvalidParameter, "summaries", "This must be keep or drop.")
	case asked == "keep" && cfg.DropImportedSummaries:
		return opts, problemf(CodeInvalidParameter, "summaries", "This server leaves out the summaries of imports. Leave the parameter out; the model's contexts are then made of the messages.")
	}
	opts.DropSummaries = asked == "drop" || cfg.DropImportedSummaries
	return opts, nil
}

// importWorkers is how many conversations of a file are stored at once: the database works
// while the next one is read and counted.
const importWorkers = 2

// maxImportNotes is how many notes an answer lists.
const maxImportNotes = 10_000

// importProblem tells who is to blame for a failed import: the store, the
// connection, or else the file.
func importProblem(err error, report transfer.Report, read, store error, limit int64) error {
	var over *http.MaxBytesError
	var silent *stalled
	var late *tooLate
	stored := "Nothing was stored."
	if report.Added+report.Present > 0 {
		stored = fmt.Sprintf("The %d conversations before that were stored.", report.Conversations)
	}
	switch {
	case errors.As(err, &late): // which ends what the store does
		return problemf(CodeTimeout, "", "The import went on for over %s after its file had come. %s Split the file, and send it again: what is there is not added twice.",
			late.limit.Round(time.Second), stored).From(err)
	case store != nil && !errors.As(read, &silent): // which ends what the store does
		return store
	case errors.As(read, &over):
		return problemf(CodeBodyTooLarge, "", "The file has over %d bytes, which is the most this server imports. %s", limit, stored)
	case read != nil:
		return problemf(CodeIncompleteBody, "", "%s %s Send it again: what is there is not added twice.", endedEarly("file", read), stored).From(read)
	case !fault.Refused(err): // of the end of the request, or the temporary file
		return err
	}
	reason := clipTo(fault.Of(err).Reason(), 1000) // what was seen, which formats came near, and all names
	switch fault.Of(err).Code {
	case transfer.CodeTooLarge:
		return problemf(CodeBodyTooLarge, "", "The file holds more than this server takes: %s. %s", reason, stored)
	case transfer.CodeEmpty:
		return problemf(CodeEmptyFile, "", "The file has nothing in it.")
	case transfer.CodeFormat:
		return problemf(CodeUnknownFormat, "", "The file can't be imported: %s.", reason)
	}
	return problemf(CodeInvalidFile, "", "The file can't be read on: %s. %s", reason, stored)
}

// bounded remembers the error that reading the request ended in, and tells of its end.
type bounded struct {
	from  io.Reader
	ended func(size int64) // called once; nil for none
	size  int64            // so far
	err   error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.size += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		if b.ended != nil {
			b.ended(b.size)
		}
		b.ended = nil
	case err != nil:
		b.err = err
	}
	return n, err
}

// watched remembers the first error of a store that broke. That it refuses a
// conversation is part of an import.
type watched struct {
	to   *tree.Store
	once sync.Once
	err  error
}

func (w *watched) Import(ctx context.Context, bundles ...tree.Bundle) ([]tree.Imported, error) {
	imported, err := w.to.Import(ctx, bundles...)
	w.watch(err)
	return imported, err
}

func (w *watched) ImportID(ctx context.Context, name string, former uuid.UUID) (uuid.UUID, error) {
	id, err := w.to.ImportID(ctx, name, former)
	w.watch(err)
	return id, err
}

func (w *watched) AddAttachment(ctx context.Context, name string, data []byte) (tree.Attachment, bool, error) {
	a, created, err := w.to.Attachments().Add(ctx, name, data)
	w.watch(err)
	return a, created, err
}

func (w *watched) Attachments(ctx context.Context, hashes ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	there, err := w.to.Attachments().All(ctx, hashes...)
	w.watch(err)
	return there, err
}

func (w *watched) watch(err error) {
	if err != nil && !fault.Refused(err) {
		w.once.Do(func() { w.err = err })
	}
}

// importReport is the schema ImportReport.
type importReport struct {
	transfer.Report
	FirstID *uuid.UUID `json:"first_conversation_id"` // nil where nothing is stored
}
