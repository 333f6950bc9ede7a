package server

import (
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat/reader"
)

// A body is what a request's JSON is read into: a small struct, made anew for each
// request.
type body interface{ read(o reader.Object) error }

// A field is a member that an object may have, and where its value goes.
type field struct {
	name     string
	required bool
	into     any // **string, **int, **float64, **bool, *[]string, *oneOrMore, *nullable, *jsonObject, or *json.RawMessage for what the handler reads
}

// nullable is a text that null takes away.
type nullable struct {
	given bool
	text  *string // nil for null
}

// orNone is the text, "" for null; nil where it wasn't given.
func (n nullable) orNone() *string {
	if n.given && n.text == nil {
		return new(string)
	}
	return n.text
}

// oneOrMore are texts, of which one may stand alone.
type oneOrMore []string

// jsonObject is a client's own JSON object, byte for byte.
type jsonObject json.RawMessage

// bind sets the fields from the members of an object. It refuses others, and misses those
// that are required.
func bind(o reader.Object, fields []field) error {
	o.Only(names(fields))
	for _, f := range fields {
		if f.required && !o.Has(f.name) {
			o.Missing(f.name)
		}
	}
	for _, f := range fields {
		f.set(o)
	}
	return o.Failed()
}

func names(fields []field) []string {
	list := make([]string, 0, 2*maxFields)
	for _, f := range fields {
		list = append(list, f.name)
	}
	return list
}

// set reads a value of the field's type.
func (f *field) set(o reader.Object) {
	switch into := f.into.(type) {
	case *json.RawMessage:
		*into = o.Raw(f.name)
	case *jsonObject:
		if *into = jsonObject(o.Get(f.name)); *into != nil && (*into)[0] != '{' {
			o.Wrong(f.name, reader.CodeType, "This must be a JSON object.")
		}
	case *nullable:
		if into.given = o.Has(f.name); into.given && !reader.IsNull(o.Raw(f.name)) {
			into.text = o.Text(f.name, math.MaxInt)
		}
	case **string:
		*into = o.Text(f.name, math.MaxInt)
	case **int:
		*into = o.Integer(f.name, math.MinInt, math.MaxInt)
	case **float64:
		*into = o.Number(f.name, math.Inf(-1), math.Inf(1))
	case **bool:
		if is := o.Boolean(f.name, false); o.Has(f.name) {
			*into = &is
		}
	case *[]string:
		*into = o.Texts(f.name)
	case *oneOrMore:
		if value := o.Get(f.name); value != nil && value[0] == '"' {
			*into = []string{o.String(f.name)}
		} else {
			*into = o.Texts(f.name)
		}
	}
}

// join is the path of a member of the object at a path, "" for the body itself.
func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// clip shortens a client's text for a problem's detail.
func clip(s string) string { return clipTo(s, 40) }

func clipTo(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
