package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// EachElement calls each with the elements of the file's array one by one, and
// the place of each. A file that isn't an array counts as elements one after the
// other; mostly it is one object. Only one element is in memory at a time.
//
// EachElement leaves out an element that isn't sound JSON, notes it, and goes on
// behind it. The brackets tell where such an element ends.
func (in *Input) EachElement(each func(place string, raw json.RawMessage) error) error {
	switch {
	case strings.HasPrefix(in.Member, Inside):
		each = in.eachInside(strings.Count(in.Member, Inside), each)
	case in.Member != "":
		return in.eachElementOf(in.Member, each)
	}
	first, err := in.Space()
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
		if _, err := in.Space(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return in.ReadError(place, err)
		}
		if err := in.element(place, each); err != nil {
			return err
		}
	}
}

// Inside is the Member of what stands in the elements of the file, in their lists and
// members; written twice, of what stands in that, and so on.
const Inside = "*"

// eachInside calls each with the objects that stand so many levels inside an element.
func (in *Input) eachInside(levels int, each func(place string, raw json.RawMessage) error) func(place string, raw json.RawMessage) error {
	if levels == 0 {
		return each
	}
	inside := in.eachInside(levels-1, each)
	below := func(place string, raw json.RawMessage) error {
		if err := in.next(place); err != nil {
			return err
		}
		return inside(place, raw)
	}
	return func(place string, raw json.RawMessage) error {
		if raw[0] != '{' && raw[0] != '[' {
			in.LeftOut(KindSyntax, place, "neither an object nor a list")
		}
		for i, element := range ElementsOf(raw) {
			if err := below(fmt.Sprintf("%s, %d", place, i+1), element); err != nil {
				return err
			}
		}
		for m := range MembersOf(raw) {
			if m.Value[0] != '{' && m.Value[0] != '[' {
				continue
			}
			if err := below(place+", "+Clip(m.Name), m.Value); err != nil {
				return err
			}
		}
		return nil
	}
}

// EachConversation is EachElement for a file in which each conversation is one
// object. read reads it, or says why it is none. One that says nothing may be another
// program's.
func (in *Input) EachConversation(emit func(Conversation) error, read func(c *Conversation, o Object, place string) (why string)) error {
	return in.EachElement(func(place string, raw json.RawMessage) error { return in.OneConversation(place, raw, emit, read) })
}

// Foreign reads an element of which the format makes nothing as another program's
// conversation, or notes that it is left out.
func (in *Input) Foreign(kind Kind, place string, raw json.RawMessage, why string) error {
	if in.Other != nil && (raw[0] == '{' || raw[0] == '[') {
		if done, err := in.Other(place, raw); done || err != nil {
			return err
		}
	}
	in.LeftOut(kind, place, "%s", why)
	return nil
}

// OneConversation is EachConversation of one element.
func (in *Input) OneConversation(place string, raw json.RawMessage, emit func(Conversation) error, read func(c *Conversation, o Object, place string) (why string)) error {
	o := ObjectOf(raw)
	if o == nil {
		in.LeftOut(KindConversation, place, "it is no object, so no conversation")
		return nil
	}
	c := in.Begin(len(raw))
	why := read(&c, o, place)
	const large = 4 << 10 // bytes of a body that surely says something, and would take memory to read
	if in.Other != nil && c.TooDense() == "" && !slices.ContainsFunc(c.Messages, func(m Message) bool { return len(m.Body) > large || saidBy(m, c.OwnIDs) > 0 }) {
		if done, err := in.Other(place, raw); done || err != nil {
			return err
		}
	}
	if why != "" {
		c.Reject(place, "%s", why)
		return nil
	}
	c.Strays(true, raw)
	return emit(c)
}

// arrays reads the elements of an array, and of others that stand behind it, as
// in files that somebody put together. What else stands there is left out.
func (in *Input) arrays(each func(place string, raw json.RawMessage) error) error {
	for {
		in.Take(1)
		if err := in.Elements(each); err != nil {
			return err
		}
		switch next, err := in.Space(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return in.ReadError("the file", err)
		case next != '[':
			in.LeftOut(KindSyntax, fmt.Sprintf("byte %d", in.At), "what stands behind the end of the array")
			return nil
		}
	}
}

// eachElementOf does the same for the array at path in the file's one object, as
// data.chats, and notes the other members that are arrays.
func (in *Input) eachElementOf(path string, each func(place string, raw json.RawMessage) error) error {
	first, err := in.Space()
	if err != nil {
		return in.ReadError("the file", err)
	}
	name, below, _ := strings.Cut(path, ".")
	if first != '{' {
		return FileErrorf("there is no object with a member %s", name)
	}
	in.Take(1)
	for {
		c, err := in.Space()
		if err != nil {
			return in.ReadError("the file's object", err)
		}
		switch c {
		case '}':
			in.Take(1)
			return nil
		case ',':
			in.Take(1)
			continue
		}
		quoted, err := in.value("the name of a member")
		if err != nil {
			return err
		}
		key, ok := "", json.Valid(quoted)
		if ok {
			key, ok = StringOf(quoted)
		}
		if c, err = in.Space(); err != nil {
			return in.ReadError("the file's object", err)
		}
		if !ok || c != ':' {
			return FileErrorf("near byte %d: no name of a member where one has to stand", in.At)
		}
		in.Take(1)
		if c, err = in.Space(); err != nil {
			return in.ReadError("the member "+Clip(key), err)
		}
		if err := in.next("the member " + Clip(key)); err != nil {
			return err
		}
		switch {
		case key == name && below != "":
			if err := in.eachElementOf(below, each); err != nil {
				return err
			}
			continue
		case key == name:
			if c != '[' {
				return FileErrorf("%s is no array", name)
			}
			in.Take(1)
			if err := in.Elements(each); err != nil {
				return err
			}
			continue
		}
		raw, err := in.value("the member " + Clip(key))
		if err != nil {
			return err
		}
		if !json.Valid(raw) {
			in.LeftOut(KindSyntax, key, "the member is no sound JSON: %s", SyntaxError(raw))
			continue
		}
		if n := Counting(raw); n > 0 {
			in.LeftOut(KindMetadata, key, "%s, part of no conversation", Counted(n, Clip(strings.TrimSuffix(key, "s"))))
		}
	}
}

// Elements reads an array whose opening bracket has been read, up to and
// including its closing bracket.
func (in *Input) Elements(each func(place string, raw json.RawMessage) error) error {
	for i := 1; ; i++ {
		place := fmt.Sprintf("element %d", i)
		c, err := in.Space()
		for err == nil && c == ',' {
			in.Take(1)
			c, err = in.Space()
		}
		if err != nil {
			return in.ReadError(place, err)
		}
		if c == ']' {
			in.Take(1)
			return nil
		}
		if err := in.element(place, each); err != nil {
			return err
		}
	}
}

func (in *Input) element(place string, each func(place string, raw json.RawMessage) error) error {
	raw, err := in.value(place)
	if err != nil {
		return err
	}
	if err := in.next(place); err != nil {
		return err
	}
	if !json.Valid(raw) {
		c := in.Conversation()
		c.Title = nameIn(raw)
		c.Reject(place, "it is no sound JSON: %s", SyntaxError(raw))
		return nil
	}
	return each(place, raw)
}

// value reads what stands between here and the end of a JSON value, which need
// not be sound: the brackets outside of strings tell.
func (in *Input) value(place string) (json.RawMessage, error) {
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
			return nil, in.ReadError(place, err)
		}
		n, ended := w.walk(buffer)
		if ended && parts == nil {
			if n == 0 {
				return nil, FileErrorf("%s, near byte %d: the structure of the file is lost: %q stands where a value has to begin", place, in.At, buffer[:1])
			}
			raw := bytes.Clone(buffer[:n])
			in.Take(n)
			return raw, nil
		}
		if last := len(parts) - 1; last >= 0 && cap(parts[last])-len(parts[last]) >= n {
			parts[last] = append(parts[last], buffer[:n]...)
		} else {
			parts = append(parts, append(make([]byte, 0, max(n, min(size, 1<<20))), buffer[:n]...))
		}
		size += n
		in.Take(n)
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

// buffered gives what is read of the file but not taken yet: a byte at least.
func (in *Input) buffered() ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	return in.Peek(in.Buffered())
}

// Take moves on by n of the buffered bytes.
func (in *Input) Take(n int) {
	_, _ = in.Discard(n)
	in.At += int64(n)
}

// Space reads white space, and returns the byte behind it without reading it.
func (in *Input) Space() (byte, error) {
	for {
		buffer, err := in.buffered()
		if err != nil {
			return 0, err
		}
		rest := bytes.TrimLeft(buffer, " \t\r\n")
		in.Take(len(buffer) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
	}
}

// SyntaxError says what encoding/json finds wrong with raw.
func SyntaxError(raw []byte) string {
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
	return CutNote(strings.ToValidUTF8(name, Replacement))
}

// Counting returns the number of elements of an array, and 0 for anything else.
func Counting(raw json.RawMessage) (n int) {
	for range ElementsOf(raw) {
		n++
	}
	return n
}

// EachRecord calls each with the objects that are the lines of a JSONL file, and says what
// of their text was repaired. A line that is no object is noted.
func (in *Input) EachRecord(each func(place string, o Object, found string) error) error {
	return in.EachLine(func(place string, line []byte) error {
		in.Took(len(line))
		sound, found := RepairText(line)
		if o := ReadObject(sound); o != nil {
			return each(place, o, found)
		}
		in.NoJSON(place)
		return nil
	})
}

// EachLine calls each with the lines of a JSONL file that are not blank, and the
// place of each. A line may have any length. A list counts as the lines that its
// elements would be.
func (in *Input) EachLine(each func(place string, line []byte) error) error {
	if first, err := in.Space(); err == nil && first == '[' || in.Member != "" {
		return in.EachElement(func(place string, raw json.RawMessage) error { return each(place, raw) })
	}
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		in.At += int64(len(line))
		in.last = errors.Is(err, io.EOF)
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			place := fmt.Sprintf("line %d", n)
			if err := in.next(place); err != nil {
				return err
			}
			if err := each(place, trimmed); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return in.ReadError(fmt.Sprintf("line %d", n), err)
		}
	}
}
