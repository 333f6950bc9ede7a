package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// eachElement hands over the elements of the file's array one by one, with the
// place where each stands. A file that is no array is taken as elements one
// after the other: mostly that is one object. Only one element is in memory at
// a time.
//
// An element that is no sound JSON is left out and noted, and the reading goes
// on behind it: where an element ends its brackets tell.
func eachElement(in *input, each func(place string, raw json.RawMessage) error) error {
	if in.member != "" {
		return eachElementIn(in, in.member, each, func(name string, raw json.RawMessage) {
			if n := counting(raw); n > 0 {
				in.note(Note{LeftOut, KindMetadata, "", cutNote(name), counted(n, clip(strings.TrimSuffix(name, "s"))) + ", part of no conversation"})
			}
		})
	}
	first, err := in.space()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case first == '[':
		return in.arrays(each)
	}
	for i := 1; ; i++ {
		place := fmt.Sprintf("element %d", i)
		if _, err := in.space(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return in.readError(place, err)
		}
		if err := in.element(place, each); err != nil {
			return err
		}
	}
}

// arrays reads the elements of an array, and of others that stand behind it, as
// in files that somebody put together. What else stands there is left out.
func (in *input) arrays(each func(place string, raw json.RawMessage) error) error {
	for {
		in.take(1)
		if err := in.elements(each); err != nil {
			return err
		}
		switch next, err := in.space(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return in.readError("the file", err)
		case next != '[':
			in.note(Note{LeftOut, KindSyntax, "", fmt.Sprintf("byte %d", in.at), "what stands behind the end of the array"})
			return nil
		}
	}
}

// eachElementIn does the same for the array that is the member name of the
// file's one object, and hands every other member to other.
func eachElementIn(in *input, name string, each func(place string, raw json.RawMessage) error, other func(name string, raw json.RawMessage)) error {
	first, err := in.space()
	if err != nil {
		return in.readError("the file", err)
	}
	if first != '{' {
		return fileErrorf("the file is no object with a member %s", name)
	}
	in.take(1)
	for {
		c, err := in.space()
		if err != nil {
			return in.readError("the file's object", err)
		}
		switch c {
		case '}':
			in.take(1)
			return nil
		case ',':
			in.take(1)
			continue
		}
		quoted, err := in.value("the name of a member")
		if err != nil {
			return err
		}
		key, ok := "", json.Valid(quoted)
		if ok {
			key, ok = stringOf(quoted)
		}
		if c, err = in.space(); err != nil {
			return in.readError("the file's object", err)
		}
		if !ok || c != ':' {
			return fileErrorf("near byte %d: no name of a member where one has to stand", in.at)
		}
		in.take(1)
		if c, err = in.space(); err != nil {
			return in.readError("the member "+clip(key), err)
		}
		if key == name {
			if c != '[' {
				return fileErrorf("%s is no array", name)
			}
			in.take(1)
			if err := in.elements(each); err != nil {
				return err
			}
			continue
		}
		raw, err := in.value("the member " + clip(key))
		if err != nil {
			return err
		}
		if !json.Valid(raw) {
			in.note(Note{LeftOut, KindSyntax, "", cutNote(key), "the member is no sound JSON: " + syntaxError(raw)})
			continue
		}
		other(key, raw)
	}
}

// elements reads an array that has been opened, up to and with its end.
func (in *input) elements(each func(place string, raw json.RawMessage) error) error {
	for i := 1; ; i++ {
		place := fmt.Sprintf("element %d", i)
		c, err := in.space()
		for err == nil && c == ',' {
			in.take(1)
			c, err = in.space()
		}
		if err != nil {
			return in.readError(place, err)
		}
		if c == ']' {
			in.take(1)
			return nil
		}
		if err := in.element(place, each); err != nil {
			return err
		}
	}
}

func (in *input) element(place string, each func(place string, raw json.RawMessage) error) error {
	raw, err := in.value(place)
	if err != nil {
		return err
	}
	if in.err = in.ctx.Err(); in.err != nil {
		return in.err
	}
	if !json.Valid(raw) {
		in.note(Note{LeftOut, KindConversation, nameIn(raw), place, "it is no sound JSON: " + syntaxError(raw)})
		return nil
	}
	return each(place, raw)
}

// value reads what stands between here and the end of a JSON value, which need
// not be sound: the brackets outside of strings tell.
func (in *input) value(place string) (json.RawMessage, error) {
	var (
		parts  [][]byte
		size   int
		w      walker
		buffer []byte
		err    error
	)
	for {
		if buffer, err = in.buffered(); err != nil {
			if errors.Is(err, io.EOF) && w.bare && size > 0 {
				break // a number or a word, which ends with the file
			}
			return nil, in.readError(place, err)
		}
		n, ended := w.walk(buffer)
		if ended && parts == nil {
			if n == 0 {
				return nil, fileErrorf("%s, near byte %d: the structure of the file is lost: %q stands where a value has to begin", place, in.at, buffer[:1])
			}
			raw := bytes.Clone(buffer[:n])
			in.take(n)
			return raw, nil
		}
		if last := len(parts) - 1; last >= 0 && cap(parts[last])-len(parts[last]) >= n {
			parts[last] = append(parts[last], buffer[:n]...)
		} else {
			parts = append(parts, append(make([]byte, 0, max(n, min(size, 1<<20))), buffer[:n]...))
		}
		size += n
		in.take(n)
		if ended {
			break
		}
	}
	raw := make([]byte, 0, size)
	for i, p := range parts {
		raw, parts[i] = append(raw, p...), nil
	}
	return raw, nil
}

// A walker looks for the end of a value.
type walker struct {
	depth            int
	inString, behind bool // behind a backslash
	bare             bool // a number or a word
}

// walk gives how many bytes of the value are in the buffer, and whether it ends
// with them.
func (w *walker) walk(buffer []byte) (n int, ended bool) {
	for i := 0; i < len(buffer); i++ {
		c := buffer[i]
		switch {
		case w.behind:
			w.behind = false
		case w.inString:
			switch c {
			case '\\':
				w.behind = true
			case '"':
				if w.inString = false; w.depth == 0 {
					return i + 1, true
				}
			}
		case c == '"':
			if w.bare {
				return i, true
			}
			w.inString = true
		case c == '{' || c == '[':
			if w.bare {
				return i, true
			}
			w.depth++
		case c == '}' || c == ']':
			if w.depth == 0 {
				return i, true
			}
			if w.depth--; w.depth == 0 {
				return i + 1, true
			}
		case w.depth > 0:
		case strings.IndexByte(" \t\r\n,:", c) >= 0:
			return i, true
		default:
			w.bare = true
		}
	}
	return len(buffer), false
}

// buffered gives what is read of the file but not taken yet: a byte at least.
func (in *input) buffered() ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	return in.Peek(in.Buffered())
}

// take moves on by n bytes of those that are buffered.
func (in *input) take(n int) {
	_, _ = in.Discard(n)
	in.at += int64(n)
}

// space takes white space, and gives the byte behind it, which it leaves.
func (in *input) space() (byte, error) {
	for {
		buffer, err := in.buffered()
		if err != nil {
			return 0, err
		}
		rest := bytes.TrimLeft(buffer, " \t\r\n")
		in.take(len(buffer) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
	}
}

// syntaxError says what encoding/json finds wrong with raw.
func syntaxError(raw []byte) string {
	err := json.Unmarshal(raw, &struct{}{})
	if err == nil {
		return "nothing"
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v, at its byte %d", err, syntax.Offset)
	}
	return err.Error()
}

// nameIn looks for what a conversation that is no sound JSON is called: its
// title, or its id.
func nameIn(raw []byte) (name string) {
	names := []string{"title", "name", "id", "uuid", "conversation_id", "conversationId", "message_tree_id"}
	best := len(names)
	var w walker
	start, isValue, member := -1, false, ""
	for i, c := range raw {
		was := w
		w.walk(raw[i : i+1])
		switch {
		case was.depth != 1:
		case w.inString && !was.inString:
			start = i + 1
		case !w.inString && was.inString && !isValue:
			member = string(raw[start:min(i, start+20)])
		case !w.inString && was.inString:
			if rank := slices.Index(names, member); rank >= 0 && rank < best {
				name, best = string(raw[start:min(i, start+200)]), rank
			}
		case !w.inString && (c == ':' || c == ','):
			isValue = c == ':'
		}
		if best == 0 {
			break
		}
	}
	return cutNote(strings.ToValidUTF8(name, replacement))
}

// counting gives the number of elements of an array, 0 of anything else.
func counting(raw json.RawMessage) (n int) {
	for range elementsOf(raw) {
		n++
	}
	return n
}

// eachLine hands over the lines of a JSONL file that are not blank, each with
// its place. A line may have any length.
func eachLine(in *input, each func(place string, line []byte) error) error {
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		in.at += int64(len(line))
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if in.err = in.ctx.Err(); in.err != nil {
				return in.err
			}
			if err := each(fmt.Sprintf("line %d", n), trimmed); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return in.readError(fmt.Sprintf("line %d", n), err)
		}
	}
}
