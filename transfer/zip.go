package transfer

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// zipMagic is how every zip archive with a file in it begins.
const zipMagic = "PK\x03\x04"

func isZip(r io.ReaderAt) bool {
	head := make([]byte, len(zipMagic))
	_, err := r.ReadAt(head, 0)
	return err == nil && string(head) == zipMagic
}

// conversationParts are the names under which exports put conversations into
// an archive: in one file, or in numbered parts. An archive without them may have any
// files of formats that are read here.
var (
	conversationParts = regexp.MustCompile(`^(conversations(-\d+)?|MyActivity|prod-grok-backend)\.json$`)
	anyParts          = regexp.MustCompile(`\.(json|jsonl|ndjson|traj)$`)
)

// The directory of an archive is held in memory, with some 300 bytes for each entry. An
// export has an entry for each picture, of some 100 bytes.
const (
	maxDirectoryBytes = 8 << 20
	maxParts          = 10_000 // with conversations
)

// A directory reads an archive, of which no more than left is read until that is set
// anew.
type directory struct {
	io.ReaderAt
	left int64
}

func (d *directory) ReadAt(p []byte, off int64) (int, error) {
	if d.left -= int64(len(p)); d.left < 0 {
		return 0, tooLarge("the directory of the archive has over %d bytes. Unpack it, and import the files in it that hold conversations", maxDirectoryBytes)
	}
	return d.ReaderAt.ReadAt(p, off)
}

// zip reads the conversations out of an archive, part by part in the order of
// their names.
func (im *importer) zip(r io.ReaderAt, size int64) error {
	if err := checkEntries(r, size); err != nil {
		return err
	}
	im.bounds.sent = func() int64 { return size }
	in := &directory{r, maxDirectoryBytes + endBytes} // whatever its end says: it may have more entries
	archive, err := zip.NewReader(in, size)
	switch {
	case errors.Is(err, fault.TooLarge):
		return err
	case err != nil:
		return format.FileErrorf("the zip archive can't be read, as one that is cut off can't: %w", err)
	}
	in.left = math.MaxInt64
	files := slices.DeleteFunc(slices.Clone(archive.File), func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/") })
	named := func(names *regexp.Regexp) (parts []*zip.File) {
		for _, f := range files {
			if names.MatchString(path.Base(f.Name)) {
				parts = append(parts, f)
			}
		}
		return parts
	}
	parts := named(conversationParts)
	known := len(parts) > 0
	if !known {
		parts = named(anyParts)
	}
	if len(parts) > maxParts {
		return tooLarge("the archive has %d files with conversations, and %d is the most. Unpack it, and import the files in it", len(parts), maxParts)
	}
	slices.SortStableFunc(parts, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	im.archive = newArchive(files)
	read := map[string]bool{}
	var unknown error
	for _, f := range parts {
		if err := im.part(f); err != nil {
			err = fmt.Errorf("%s: %w", f.Name, err)
			if code := fault.Of(err).Code; !known && (code == CodeFormat || code == CodeEmpty) {
				unknown = err
				continue
			}
			return err
		}
		read[f.Name] = true
	}
	var others []string
	for _, f := range files {
		if !read[f.Name] && !im.archive.taken[f] {
			others = append(others, f.Name)
		}
	}
	switch {
	case len(read) == 0 && unknown != nil:
		return unknown
	case len(read) == 0:
		return fault.New(fault.Invalid, CodeFormat, "", "the archive has no file of a format that is read here. Unpack it, and import the files in it")
	case len(others) > 0:
		im.note(format.Note{Action: format.LeftOut, Kind: format.KindAttachment, Place: strings.Join(others[:min(len(others), 5)], ", "), Detail: format.Counted(len(others), "file") + " of the archive besides the conversations"})
	}
	return nil
}

// An archive finds files by the ids with which their names begin.
type archive struct {
	files []*zip.File        // by their names without folders
	taken map[*zip.File]bool // that a message names
	names map[string]string  // that they had, where the archive says it
}

// assetNames is the file in which ChatGPT says what the files were called.
const assetNames = "conversation_asset_file_names.json"

func newArchive(files []*zip.File) *archive {
	a := &archive{files: slices.Clone(files), taken: map[*zip.File]bool{}, names: map[string]string{}}
	slices.SortStableFunc(a.files, func(x, y *zip.File) int { return strings.Compare(path.Base(x.Name), path.Base(y.Name)) })
	for _, f := range files {
		if path.Base(f.Name) != assetNames {
			continue
		}
		if data, err := unzip(f, maxDirectoryBytes); err == nil && json.Valid(data) {
			for name, raw := range format.ObjectUpTo(data, len(data)) {
				a.names[path.Base(name)], _ = format.StringOf(raw)
			}
			a.taken[f] = true
		}
	}
	return a
}

// archived gives the file whose name is an id, or begins with it.
func (im *importer) archived(id string) (name string, data []byte, ok bool) {
	a := im.archive
	i, _ := slices.BinarySearchFunc(a.files, id, func(f *zip.File, id string) int { return strings.Compare(path.Base(f.Name), id) })
	if i == len(a.files) {
		return "", nil, false
	}
	f := a.files[i]
	rest, found := strings.CutPrefix(path.Base(f.Name), id)
	if !found || rest != "" && rest[0] != '.' && rest[0] != '-' && rest[0] != '_' {
		return "", nil, false
	}
	data, err := unzip(f, tree.MaxAttachmentBytes)
	if err != nil || im.bounds.unpack(len(data)) != nil { // which the next read of the file finds again
		return "", nil, false
	}
	a.taken[f] = true
	name = cmp.Or(a.names[path.Base(f.Name)], strings.TrimLeft(rest, "-_"))
	if strings.HasPrefix(name, ".") {
		name = path.Base(f.Name)
	}
	return name, data, true
}

// unzip gives a file of an archive, up to so many bytes.
func unzip(f *zip.File, most int64) ([]byte, error) {
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(data)) > most {
		err = fault.TooLarge
	}
	return data, err
}

func (im *importer) part(f *zip.File) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return im.stream(in)
}

// spooledZip reads an archive from a stream. Its directory stands at the end,
// so it has to be kept somewhere, and it may be larger than memory.
func (im *importer) spooledZip(r io.Reader) error {
	f, err := os.CreateTemp("", "coppice-import-*.zip")
	if err != nil {
		return im.noSpool(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	size, err := io.Copy(writerFunc(func(p []byte) (int, error) {
		n, err := f.Write(p)
		return n, im.noSpool(err)
	}), r)
	if err != nil {
		return err
	}
	return im.zip(f, size)
}

// noSpool ends the run where the temporary file can't be written, of which the
// archive isn't to blame.
func (im *importer) noSpool(err error) error {
	if err != nil {
		err = fmt.Errorf("the archive can't be kept in a temporary file; see to the folder that TMPDIR names, and its room: %w", err)
		im.stop(err)
	}
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// endBytes is enough to find the directory by: the end of an archive is a record
// with a comment of up to 64 KiB, and others before it where it is large.
const endBytes = 128 << 10

// checkEntries refuses an archive whose end tells of more entries than a directory may
// have, before memory is taken for them. Other faults are for package zip to find.
func checkEntries(r io.ReaderAt, size int64) error {
	end := make([]byte, min(size, 22+1<<16))
	if _, err := r.ReadAt(end, size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	at := bytes.LastIndex(end, []byte("PK\x05\x06"))
	if at < 0 || len(end) < at+22 {
		return nil
	}
	entries := uint64(binary.LittleEndian.Uint16(end[at+10:]))
	if large := at - 20; entries == math.MaxUint16 && large >= 0 && bytes.HasPrefix(end[large:], []byte("PK\x06\x07")) {
		record := make([]byte, 56)
		if _, err := r.ReadAt(record, int64(binary.LittleEndian.Uint64(end[large+8:]))); err != nil {
			return nil
		}
		entries = binary.LittleEndian.Uint64(record[32:])
	}
	const least = 46 // bytes of an entry
	if entries > maxDirectoryBytes/least {
		return tooLarge("the archive has %d entries, and %d is the most. Unpack it, and import the files in it that hold conversations", entries, maxDirectoryBytes/least)
	}
	return nil
}
