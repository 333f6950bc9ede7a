// Package reader reads the JSON of a request, for every API: it gives the values of an
// object's members, and remembers the first thing that is wrong, and where.
//
//	o := reader.Open(body)
//	name, list := o.Required("name"), o.Objects("list", 100)
//	return o.Failed()
package reader

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// Codes of what is wrong with a request.
const (
	CodeMissing     = "missing_field"
	CodeType        = "wrong_type"
	CodeValue       = "invalid_value"
	CodeUnsupported = "unsupported_value"     // of a member that is served otherwise
	CodeParameter   = "unsupported_parameter" // of a member that is never served
)

// A Reader remembers the first thing that is wrong with a request. What is read after it
// means nothing.
type Reader struct {
	Err    *fault.Error
	strict bool
}

// Fail says what is wrong, unless something else was before.
func (r *Reader) Fail(err *fault.Error) {
	if r.Err == nil {
		r.Err = err
	}
}

// WrongAt says what is wrong at a place of the request.
func (r *Reader) WrongAt(at *Path, code, format string, args ...any) {
	if r.Err == nil {
		r.Err = fault.New(fault.Invalid, code, at.String(), format, args...)
	}
}

// Failed returns what is wrong; nil for nothing.
func (r *Reader) Failed() error {
	if r.Err == nil {
		return nil
	}
	return r.Err
}

// A Path names a value of a request. It becomes text only where something is wrong
// there. A nil Path is the request itself.
type Path struct {
	up    *Path
	name  string
	index int // in the array of that name; -1 for the member itself
}

// Member is the path of an object's member.
func (p *Path) Member(name string) *Path { return &Path{p, name, -1} }

// Element is the path of an element of an array, which is an object's member.
func (p *Path) Element(name string, i int) *Path { return &Path{p, name, i} }

// String returns the path as errors have it, such as messages[2].content.
func (p *Path) String() string {
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

// An Object is a JSON object of a request. Of members with one name the last counts, and
// null is no value, unless the request is read strictly.
type Object struct {
	*Reader
	At      *Path
	members []member
}

type member struct {
	name  []byte
	value json.RawMessage
}

// maxMembers is how many members an object may have. They are all kept.
const maxMembers = 1000

// Open reads the body of a request. One that is no object has no members.
func Open(body []byte) Object {
	r := &Reader{}
	if r.check(body); r.Err == nil {
		r.Err = fault.Of(chat.CheckString(body, "body"))
	}
	return r.open(body)
}

// envelope is what a request puts around what is stored: around metadata in a chain stand the
// body, the array and the message.
const envelope = 3

// OpenStrict reads a body of which every member counts: null is of no type, and where Only
// names the members, others are refused.
func OpenStrict(body []byte) Object {
	r := &Reader{strict: true}
	if chat.Nesting(body) > chat.MaxNesting+envelope {
		r.WrongAt(nil, "too_deep", "The body nests arrays and objects more than %d deep.", chat.MaxNesting)
	}
	r.check(body)
	return r.open(body)
}

func (r *Reader) open(body []byte) Object {
	if r.Err != nil {
		return Object{Reader: r}
	}
	return r.Object(body, nil)
}

// check checks the syntax of a body.
func (r *Reader) check(body []byte) {
	switch {
	case !utf8.Valid(body):
		r.WrongAt(nil, "invalid_utf8", "The body is not valid UTF-8. Encode it as UTF-8, without a byte order mark.")
	case !json.Valid(body):
		var syntax *json.SyntaxError
		if err := json.Unmarshal(body, new(any)); errors.As(err, &syntax) {
			r.WrongAt(nil, "invalid_json", "The body is not one JSON value: %s, at byte %d.", syntax, syntax.Offset)
		}
		r.WrongAt(nil, "invalid_json", "The body is not one JSON value.")
	case bytes.TrimLeft(body, " \t\r\n")[0] != '{':
		r.WrongAt(nil, CodeType, "The body must be a JSON object.")
	}
}

// Object reads an object within a request.
func (r *Reader) Object(raw json.RawMessage, at *Path) Object {
	o := Object{Reader: r, At: at}
	if len(raw) == 0 || raw[0] != '{' && bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		r.WrongAt(at, CodeType, "This must be an object.")
		return o
	}
	o.members = make([]member, 0, 8)
	for name, value := range chat.EachMember(raw) {
		if len(o.members) == maxMembers {
			r.WrongAt(at, CodeValue, "This has more than %d members, which is the most.", maxMembers)
			break
		}
		o.members = append(o.members, member{name, value})
	}
	return o
}

// Only refuses members of other names, and one that stands twice.
func (o Object) Only(names []string) {
	for i, m := range o.members {
		switch name := string(m.name); {
		case !slices.Contains(names, name):
			names = slices.Sorted(slices.Values(names))
			o.Wrong(fault.Clip(name), "unknown_field", "There is no field of this name here. The fields are %s.", strings.Join(names, ", "))
		case slices.ContainsFunc(o.members[:i], func(before member) bool { return string(before.name) == name }):
			o.Wrong(name, "duplicate_field", "The field stands twice. Send it once.")
		}
	}
}

// WithoutNulls is the object without the members that are null, but for those named.
func (o Object) WithoutNulls(but []string) Object {
	null := func(m member) bool { return IsNull(m.value) && !slices.Contains(but, string(m.name)) }
	if slices.ContainsFunc(o.members, null) {
		o.members = slices.DeleteFunc(slices.Clone(o.members), null)
	}
	return o
}

// Empty tells whether the object has no member.
func (o Object) Empty() bool { return len(o.members) == 0 }

// Has tells whether a member is there, be it null.
func (o Object) Has(name string) bool { return o.Raw(name) != nil }

// Raw returns a member's value, be it null; nil where it is absent.
func (o Object) Raw(name string) json.RawMessage {
	for _, m := range slices.Backward(o.members) {
		if string(m.name) == name {
			return m.value
		}
	}
	return nil
}

// Get returns a member's value; nil where it is absent or null.
func (o Object) Get(name string) json.RawMessage {
	value := o.Raw(name)
	if !IsNull(value) {
		return value
	}
	if o.strict && value != nil {
		o.Wrong(name, CodeType, "This is null. Leave it out where there is nothing to say.")
	}
	return nil
}

// IsNull tells whether a value is absent or null.
func IsNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

// Set puts a value in the place of a member.
func (o *Object) Set(name string, value json.RawMessage) {
	o.members = append(o.members, member{[]byte(name), value})
}

// Inner reads a member that is an object; one without members where it is absent.
func (o Object) Inner(name string) Object {
	if value := o.Get(name); value != nil {
		return o.Object(value, o.At.Member(name))
	}
	return Object{Reader: o.Reader, At: o.At.Member(name)}
}

// Wrong says what is wrong with a member.
func (o Object) Wrong(name, code, format string, args ...any) {
	if o.Err == nil {
		o.WrongAt(o.At.Member(name), code, format, args...)
	}
}

// Missing says that a member is missing.
func (o Object) Missing(name string) {
	o.Wrong(name, CodeMissing, "%s is required.", o.At.Member(name))
}

// Refuse refuses members that can't be served, with a reason for each.
func (o Object) Refuse(names ...string) {
	for i := 0; i+1 < len(names); i += 2 {
		if o.Get(names[i]) != nil {
			o.Wrong(names[i], CodeParameter, "%s is not supported: %s", names[i], names[i+1])
		}
	}
}

// Text reads a string of at most so many characters; nil for none.
func (o Object) Text(name string, most int) *string {
	value := o.Get(name)
	if value == nil {
		return nil
	}
	if value[0] != '"' {
		o.Wrong(name, CodeType, "This must be a string.")
		return nil
	}
	text := o.text(value, name, -1)
	if len(text) > most && utf8.RuneCountInString(text) > most {
		o.Wrong(name, CodeValue, "This has %d characters, and %d is the most.", utf8.RuneCountInString(text), most)
	}
	return &text
}

// text reads a string that is a member, or an element of one.
func (o Object) text(value json.RawMessage, name string, i int) string {
	text := chat.String(value)
	if o.strict && strings.ContainsRune(text, utf8.RuneError) { // for which half a surrogate pair is read
		o.Fail(fault.Of(fault.At(chat.CheckString(value, "text"), o.At.Element(name, i).String())))
	}
	return text
}

// String reads a string of any length; "" for none.
func (o Object) String(name string) string {
	if text := o.Text(name, math.MaxInt); text != nil {
		return *text
	}
	return ""
}

// Given reads a string that must be there, and may be empty.
func (o Object) Given(name string) string {
	text := o.Text(name, math.MaxInt)
	if text == nil {
		o.Missing(name)
		return ""
	}
	return *text
}

// Required reads a string that must be there and not be empty.
func (o Object) Required(name string) string { return o.RequiredUpTo(name, math.MaxInt) }

// RequiredUpTo is Required of at most so many characters.
func (o Object) RequiredUpTo(name string, most int) string {
	text := o.Text(name, most)
	if text == nil || *text == "" {
		o.Missing(name)
		return ""
	}
	return *text
}

// OneOf reads a string that is one of a list; "" for none.
func (o Object) OneOf(name string, values ...string) string {
	text := o.Text(name, math.MaxInt)
	if text == nil {
		return ""
	}
	if !slices.Contains(values, *text) {
		o.Wrong(name, CodeValue, "%q is not supported here. Use one of %v.", fault.Clip(*text), values)
	}
	return *text
}

// Boolean reads true or false.
func (o Object) Boolean(name string, absent bool) bool {
	value := o.Get(name)
	switch {
	case value == nil:
		return absent
	case value[0] != 't' && value[0] != 'f':
		o.Wrong(name, CodeType, "This must be true or false.")
	}
	return value[0] == 't'
}

// Integer reads a whole number within bounds; nil for none.
func (o Object) Integer(name string, least, most int) *int {
	return numeric(o, name, "a whole number", least, most, strconv.Atoi)
}

// Number reads a number within bounds; nil for none.
func (o Object) Number(name string, least, most float64) *float64 {
	return numeric(o, name, "a number", least, most, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func numeric[T int | float64](o Object, name, what string, least, most T, parse func(string) (T, error)) *T {
	value := o.Get(name)
	if value == nil {
		return nil
	}
	n, err := parse(string(value))
	switch {
	case err != nil:
		o.Wrong(name, CodeType, "This must be %s.", what)
	case n < least || n > most:
		o.Wrong(name, CodeValue, "%v is not between %v and %v.", n, least, most)
	}
	return &n
}

// List returns the elements of an array of at most so many; none where it is absent. It
// ends with the first thing that is wrong.
func (o Object) List(name string, most int) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		value := o.Get(name)
		if value == nil {
			return
		}
		if value[0] != '[' {
			o.Wrong(name, CodeType, "This must be an array.")
			return
		}
		i := 0
		for element := range chat.Elements(value) {
			if i == most {
				o.Wrong(name, CodeValue, "This has more than %d elements, which is the most.", most)
				return
			}
			if !yield(i, element) || o.Err != nil {
				return
			}
			i++
		}
	}
}

// Texts reads an array of strings; nil for none.
func (o Object) Texts(name string) (texts []string) {
	if o.Get(name) != nil {
		texts = []string{}
	}
	for i, raw := range o.List(name, math.MaxInt) {
		if raw[0] != '"' {
			o.WrongAt(o.At.Element(name, i), CodeType, "This must be a string.")
			break
		}
		texts = append(texts, o.text(raw, name, i))
	}
	return texts
}

// Objects returns the elements of an array, each of which must be an object, as List does.
func (o Object) Objects(name string, most int) iter.Seq2[int, Object] {
	return func(yield func(int, Object) bool) {
		for i, raw := range o.List(name, most) {
			if !yield(i, o.Object(raw, o.At.Element(name, i))) {
				return
			}
		}
	}
}
