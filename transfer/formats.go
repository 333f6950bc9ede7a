package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/chatbotui"
	"github.com/coppice-chat/coppice/transfer/format/chatgpt"
	"github.com/coppice-chat/coppice/transfer/format/claude"
	"github.com/coppice-chat/coppice/transfer/format/claudecode"
	"github.com/coppice-chat/coppice/transfer/format/codex"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/transfer/format/librechat"
	"github.com/coppice-chat/coppice/transfer/format/messages"
	"github.com/coppice-chat/coppice/transfer/format/oasst"
	"github.com/coppice-chat/coppice/transfer/format/openwebui"
	"github.com/coppice-chat/coppice/transfer/format/pi"
	"github.com/coppice-chat/coppice/transfer/format/sweagent"
	"github.com/coppice-chat/coppice/transfer/format/taubench"
)

// All returns every format that Import reads. The first format that recognizes a
// file reads it, so the formats with the most telling marks come first. A new
// format gets its line here.
func All() []format.Format {
	return []format.Format{
		chatgpt.Format{},
		claude.Format{},
		librechat.Format{},
		openwebui.Format{},
		sweagent.Format{},
		chatbotui.Format{},
		oasst.Format{},
		coppice.Format{},
		codex.Format{},
		claudecode.Format{},
		pi.Format{},
		taubench.Format{},
		messages.Format{}, // last: other formats have roles and content too
	}
}

// Formats lists the names of the formats that Import reads.
func Formats() []string { return namesOf(All()) }

func namesOf(formats []format.Format) (names []string) {
	for _, f := range formats {
		names = append(names, f.Name())
	}
	return names
}

// A file is recognized by its first bytes: by as few as tell, and at most by so
// many.
const (
	headBytes    = 64 << 10
	maxHeadBytes = 4 << 20
)

// recognize reads as much of r as it needs to tell the format, or to find that
// it can't. A name of a format tells by itself. member names the list in the
// file's one object in which the conversations stand; "" for the file itself.
func recognize(r io.Reader, name string, formats []format.Format) (head []byte, f format.Format, member string, err error) {
	for size := headBytes; ; size *= 4 {
		was := len(head)
		head = append(make([]byte, 0, size), head...)[:size]
		n, readErr := io.ReadFull(r, head[was:])
		head = head[:was+n]
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return nil, nil, "", readErr
		}
		if readErr != nil && len(bytes.TrimSpace(head)) == 0 {
			return nil, nil, "", fault.New(fault.Invalid, CodeEmpty, "", "the file is empty")
		}
		f, member, err = choose(name, head, formats)
		if err != nil && fault.Refused(readErr) { // a packed file that is cut off
			err = readErr
		}
		if err == nil || readErr != nil || name != "" || size >= maxHeadBytes {
			return head, f, member, err
		}
	}
}

// wrappers are names of lists of conversations in the one object of a file.
var wrappers = []string{"conversations", "chats", "data"}

// choose gives the format of the name, or the one that head is of.
func choose(name string, head []byte, formats []format.Format) (_ format.Format, member string, _ error) {
	outline := format.OutlineOf(head)
	among := formats
	if name != "" {
		i := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name() == name })
		if i < 0 {
			return nil, "", fault.New(fault.Invalid, CodeFormat, "", "%q is no format; there are %s", fault.Clip(name), strings.Join(namesOf(formats), ", "))
		}
		among = formats[i : i+1]
	}
	for _, member := range append([]string{""}, wrappers...) {
		inside := outline.In(member)
		if i := slices.IndexFunc(among, func(f format.Format) bool { return f.Recognizes(inside) }); i >= 0 {
			return among[i], member, nil
		}
	}
	if name != "" {
		return among[0], "", nil
	}
	return nil, "", fault.New(fault.Invalid, CodeFormat, "", "the content is of no format that is read here; these are: %s. %s", strings.Join(namesOf(formats), ", "), nearest(outline, formats))
}

// nearest says which format an outline resembles most.
func nearest(outline format.Outline, formats []format.Format) string {
	best, found := "", []string(nil)
	for _, f := range formats {
		var has []string
		for _, path := range f.Marks() {
			if outline.Has(path) {
				has = append(has, path)
			}
		}
		if len(has) > len(found) {
			best, found = f.Name(), has
		}
	}
	if best == "" {
		return "If it is one of them, name it by --format, or over REST by the parameter format"
	}
	return fmt.Sprintf("The nearest is %s, as it has %s. To have it read as that, say --format %[1]s, or over REST format=%[1]s", best, strings.Join(found, ", "))
}
