package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// Codes of what is wrong with a request, as OpenAI has them.
const (
	CodeMissing     = "missing_required_parameter"
	codeType        = "invalid_type"
	CodeValue       = "invalid_value"
	CodeUnsupported = "unsupported_value"     // of a member that is served otherwise
	codeParameter   = "unsupported_parameter" // of a member that is never served
)

// A request is read by one reader, which remembers the first thing that is
// wrong. What is read after it means nothing.
type reader struct{ err *fault.Error }

func (r *reader) wrongAt(at *fieldPath, code, format string, args ...any) {
	if r.err == nil {
		r.err = fault.New(fault.Invalid, code, at.String(), format, args...)
	}
}

func (r *reader) failed() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// An object is a JSON object of which some members are read. It keeps these
// alone, so that a million others take no memory.
type object struct {
	*reader
	at      *fieldPath
	members []chat.Member
}

// A fieldPath names a value of a request. It becomes text only where
// something is wrong there. A nil fieldPath is the request itself.
type fieldPath struct {
	up    *fieldPath
	name  string
	index int // in the array of that name; -1 for the member itself
}

func (p *fieldPath) member(name string) *fieldPath         { return &fieldPath{p, name, -1} }
func (p *fieldPath) element(name string, i int) *fieldPath { return &fieldPath{p, name, i} }

func (p *fieldPath) String() string {
	if p == nil {
		return ""
	}
	path := p.name
	if p.index >= 0 {
		path += "[" + strconv.Itoa(p.index) + "]"
	}
	if p.up != nil {
		path = p.up.String() + "." + path
	}
	return path
}

// open reads the body of a request. One that is no object has no members.
func open(body []byte, names ...string) object {
	r := &reader{}
	if err := chat.CheckObject(body, "request's body"); err != nil {
		r.err = fault.Of(err)
		return object{reader: r}
	}
	return r.object(body, nil, names...)
}

// object reads an object within a request. Unknown members are passed over.
func (r *reader) object(raw json.RawMessage, at *fieldPath, names ...string) object {
	o := object{reader: r, at: at}
	if len(raw) == 0 || raw[0] != '{' && bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		r.wrongAt(at, codeType, "This must be an object.")
		return o
	}
	o.members = make([]chat.Member, 0, min(len(names), 8))
	for key, value := range chat.EachMember(raw) {
		at := slices.IndexFunc(names, func(known string) bool { return known == string(key) })
		if at < 0 {
			continue
		}
		if i := o.index(names[at]); i >= 0 {
			o.members[i].Value = value
			continue
		}
		o.members = append(o.members, chat.Member{Name: names[at], Value: value})
	}
	return o
}

func (o object) index(name string) int {
	return slices.IndexFunc(o.members, func(m chat.Member) bool { return m.Name == name })
}

// get gives a member's value; nil where it is absent or null.
func (o object) get(name string) json.RawMessage {
	i := o.index(name)
	if i < 0 || isNull(o.members[i].Value) {
		return nil
	}
	return o.members[i].Value
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

func (o object) wrong(name, code, format string, args ...any) {
	if o.err == nil {
		o.wrongAt(o.at.member(name), code, format, args...)
	}
}

// refuse refuses members that can't be served, with a reason for each.
func (o object) refuse(names ...string) {
	for i := 0; i+1 < len(names); i += 2 {
		if o.get(names[i]) != nil {
			o.wrong(names[i], codeParameter, "%s is not supported: %s", names[i], names[i+1])
		}
	}
}

// text reads a string of at most so many characters; nil for none.
func (o object) text(name string, most int) *string {
	value := o.get(name)
	if value == nil {
		return nil
	}
	if value[0] != '"' {
		o.wrong(name, codeType, "This must be a string.")
		return nil
	}
	text := chat.String(value)
	if len(text) > most && utf8.RuneCountInString(text) > most {
		o.wrong(name, CodeValue, "This has %d characters, and %d is the most.", utf8.RuneCountInString(text), most)
	}
	return &text
}

// required is text that must be there and not be empty.
func (o object) required(name string, most int) string {
	text := o.text(name, most)
	if text == nil || *text == "" {
		o.wrong(name, CodeMissing, "Missing required parameter: %s.", o.at.member(name))
		return ""
	}
	return *text
}

// oneOf reads a string that is one of a list; "" for none.
func (o object) oneOf(name string, values ...string) string {
	text := o.text(name, math.MaxInt)
	if text == nil {
		return ""
	}
	if !slices.Contains(values, *text) {
		o.wrong(name, CodeValue, "%q is not supported here. Use one of %v.", fault.Clip(*text), values)
	}
	return *text
}

func (o object) boolean(name string, absent bool) bool {
	value := o.get(name)
	switch {
	case value == nil:
		return absent
	case value[0] != 't' && value[0] != 'f':
		o.wrong(name, codeType, "This must be true or false.")
	}
	return value[0] == 't'
}

// integer reads a whole number within bounds; nil for none.
func (o object) integer(name string, least, most int) *int {
	return numeric(o, name, "a whole number", least, most, strconv.Atoi)
}

// number reads a number within bounds; nil for none.
func (o object) number(name string, least, most float64) *float64 {
	return numeric(o, name, "a number", least, most, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func numeric[T int | float64](o object, name, what string, least, most T, parse func(string) (T, error)) *T {
	value := o.get(name)
	if value == nil {
		return nil
	}
	n, err := parse(string(value))
	switch {
	case err != nil:
		o.wrong(name, codeType, "This must be %s between %v and %v.", what, least, most)
	case n < least || n > most:
		o.wrong(name, CodeValue, "%v is not between %v and %v.", n, least, most)
	}
	return &n
}

// list gives the elements of an array of at most so many; none where it is
// absent. It ends with the first thing that is wrong.
func (o object) list(name string, most int) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		value := o.get(name)
		if value == nil {
			return
		}
		if value[0] != '[' {
			o.wrong(name, codeType, "This must be an array.")
			return
		}
		i := 0
		for element := range chat.Elements(value) {
			if i == most {
				o.wrong(name, CodeValue, "This has more than %d elements, which is the most.", most)
				return
			}
			if !yield(i, element) || o.err != nil {
				return
			}
			i++
		}
	}
}
