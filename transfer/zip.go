package transfer

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
)

// zipMagic is how every zip archive with a file in it begins.
const zipMagic = "PK\x03\x04"

func isZip(r io.ReaderAt) bool {
	head := make([]byte, len(zipMagic))
	_, err := r.ReadAt(head, 0)
	return err == nil && string(head) == zipMagic
}

// conversationParts are the names under which exports put conversations into
// an archive: in one file, or in numbered parts.
var conversationParts = regexp.MustCompile(`^conversations(-\d+)?\.json$`)

// zip reads the conversations out of an archive, part by part in the order of
// their names.
func (im *importer) zip(r io.ReaderAt, size int64) error {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return format.FileErrorf("the zip archive can't be read, as one that is cut off can't: %w", err)
	}
	var parts []*zip.File
	var others []string
	for _, f := range archive.File {
		switch name := path.Base(f.Name); {
		case strings.HasSuffix(f.Name, "/"):
		case conversationParts.MatchString(name):
			parts = append(parts, f)
		default:
			others = append(others, f.Name)
		}
	}
	if len(parts) == 0 {
		return fault.New(fault.Invalid, CodeFormat, "", "the archive has no conversations.json, as those of ChatGPT and Claude have. Unpack it, and import the files in it")
	}
	if len(others) > 0 {
		im.note(format.Note{Action: format.LeftOut, Kind: format.KindAttachment, Place: strings.Join(others[:min(len(others), 5)], ", "), Detail: format.Counted(len(others), "file") + " of the archive besides the conversations"})
	}
	slices.SortStableFunc(parts, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range parts {
		if err := im.part(f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
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
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	size, err := io.Copy(f, r)
	if err != nil {
		return err
	}
	return im.zip(f, size)
}
