package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// formats is every format, the more telling ones first: the first that
// recognizes a file reads it. A new format adds its line here.
var formats = []format{
	formatChatGPT{},
	formatClaude{},
	formatLibreChat{},
	formatOpenWebUI{},
	formatSWEAgent{},
	formatChatbotUI{},
	formatOASST{},
	formatCoppice{},
	formatCodex{},
	formatClaudeCode{},
	formatPi{},
	formatTauBench{},
	formatMessages{}, // last: other formats have roles and content too
}

// Formats lists the names of the formats that Import reads.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name()
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
func recognize(r io.Reader, name string) (head []byte, f format, member string, err error) {
	for size := headBytes; ; size *= 4 {
		was := len(head)
		head = append(make([]byte, 0, size), head...)[:size]
		n, readErr := io.ReadFull(r, head[was:])
		head = head[:was+n]
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return nil, f, "", readErr
		}
		if readErr != nil && len(bytes.TrimSpace(head)) == 0 {
			return nil, f, "", ErrEmpty
		}
		f, member, err = choose(name, head)
		if err == nil || readErr != nil || name != "" || size >= maxHeadBytes {
			return head, f, member, err
		}
	}
}

// wrappers are names of lists of conversations in the one object of a file.
var wrappers = []string{"conversations", "chats", "data"}

// choose gives the format of the name, or the one that head is of.
func choose(name string, head []byte) (_ format, member string, _ error) {
	s := shapeOf(head)
	among := formats
	if name != "" {
		i := slices.IndexFunc(formats, func(f format) bool { return f.Name() == name })
		if i < 0 {
			return nil, "", fmt.Errorf("%q is no format; there are %s: %w", name, strings.Join(Formats(), ", "), ErrFormat)
		}
		among = formats[i : i+1]
	}
	for _, member := range append([]string{""}, wrappers...) {
		inside := s.in(member)
		if i := slices.IndexFunc(among, func(f format) bool { return f.Recognizes(inside) }); i >= 0 {
			return among[i], member, nil
		}
	}
	if name != "" {
		return among[0], "", nil
	}
	return nil, "", fmt.Errorf("the content is of no format that is read here; these are: %s. %s: %w", strings.Join(Formats(), ", "), s.nearest(), ErrFormat)
}

// nearest says which format the file resembles most.
func (s shape) nearest() string {
	best, found := "", []string(nil)
	for _, f := range formats {
		var has []string
		for _, path := range f.Marks() {
			if s.has(path) {
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
