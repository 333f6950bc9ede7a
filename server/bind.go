package server

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/coppice-chat/coppice/internal/rawjson"
)

// jsonObject is a client's own JSON object, byte for byte.
type jsonObject json.RawMessage

// binder reads request bodies strictly into the types that openapi.yaml
// defines: their tags name the members there are, and those without omitempty
// are required.
type binder struct{ maxBytes int64 }

// Bind reads the request's body into i. A body of no bytes is an io.EOF, by
// which the generated code knows an optional body that isn't there.
func (b binder) Bind(i any, c echo.Context) error {
	data, err := b.read(c)
	if err != nil {
		return err
	}
	o, err := parseObject(data)
	if err != nil {
		return err
	}
	if body, ok := i.(*appendBody); ok {
		return body.read(o)
	}
	return bindObject(o, "", reflect.ValueOf(i).Elem())
}

func (b binder) read(c echo.Context) ([]byte, error) {
	req := c.Request()
	if req.ContentLength > b.maxBytes {
		return nil, b.tooLarge()
	}
	if req.ContentLength == 0 || req.Body == http.NoBody {
		return nil, errNoBody
	}
	if err := checkContentType(req.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	body := http.MaxBytesReader(c.Response().Writer, req.Body, b.maxBytes)
	var data []byte
	var err error
	if req.ContentLength > 0 {
		data = make([]byte, req.ContentLength)
		_, err = io.ReadFull(body, data)
	} else {
		data, err = io.ReadAll(body)
	}
	var over *http.MaxBytesError
	switch {
	case err == nil && len(data) == 0:
		return nil, errNoBody
	case err == nil:
		return data, nil
	case asError(err, &over):
		return nil, b.tooLarge()
	}
	return nil, problemf(CodeIncompleteBody, "", "%s Send the request again.", endedEarly("body", err)).From(err)
}

func (b binder) tooLarge() error {
	return problemf(CodeBodyTooLarge, "", "The body has over %d bytes, which is the most this server takes. Send a chain in several pieces.", b.maxBytes)
}

// errNoBody is an io.EOF to the generated code and a problem to the client.
var errNoBody = problemf(CodeMissingBody, "", "The request needs a body: a JSON object.").From(io.EOF)

func checkContentType(header string) error {
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" {
		return problemf(CodeUnsupportedMediaType, "", "Send the body as JSON in UTF-8, with the header Content-Type: application/json.")
	}
	return nil
}

// checkEncoding refuses compressed bodies: their size says nothing of what is
// in them.
func checkEncoding(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if e := c.Request().Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			return problemf(CodeUnsupportedMediaType, "Content-Encoding", "This server takes no compressed bodies. Send it as it is, without Content-Encoding.")
		}
		return next(c)
	}
}

// A shape is what bodies of one type may hold.
type shape struct {
	names  []string // in alphabetical order, as generated
	fields map[string]shapeField
}

type shapeField struct {
	index    int
	required bool
}

var shapes sync.Map // reflect.Type → *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{fields: make(map[string]shapeField)}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		s.names = append(s.names, name)
		s.fields[name] = shapeField{i, !strings.Contains(options, "omitempty")}
	}
	shapes.Store(t, s)
	return s
}

// check refuses members that the shape doesn't have or that stand twice, and
// misses those it requires. The path is that of the object in the body, "" for
// the body itself.
func (s *shape) check(o object, path string) error {
	for i, m := range o {
		if _, ok := s.fields[m.name]; !ok {
			return problemf(CodeUnknownField, join(path, clip(m.name)), "There is no field of this name here. The fields are %s.", strings.Join(s.names, ", "))
		}
		for _, before := range o[:i] {
			if before.name == m.name {
				return problemf(CodeDuplicateField, join(path, m.name), "The field stands twice. Send it once.")
			}
		}
	}
	for _, name := range s.names {
		if _, ok := o.get(name); !ok && s.fields[name].required {
			detail := "The field is required."
			if name == "parent_id" {
				detail += " Give the id of the message to append to, or null to start a new root."
			}
			return problemf(CodeMissingField, join(path, name), "%s", detail)
		}
	}
	return nil
}

// bindObject sets the fields of a struct from the members of an object.
func bindObject(o object, path string, target reflect.Value) error {
	s := shapeOf(target.Type())
	if err := s.check(o, path); err != nil {
		return err
	}
	for _, m := range o {
		f := s.fields[m.name]
		if err := bindValue(m.value, join(path, m.name), f.required, target.Field(f.index)); err != nil {
			return err
		}
	}
	return nil
}

// bindValue sets one field. Null is as good as a value only where a field is
// required and may be null, which is a pointer without omitempty.
func bindValue(raw json.RawMessage, path string, required bool, target reflect.Value) error {
	if p, ok := target.Addr().Interface().(*jsonObject); ok {
		if raw[0] != '{' {
			return problemf(CodeWrongType, path, "This must be a JSON object. Leave it out where there is none.")
		}
		*p = jsonObject(raw)
		return nil
	}
	if p, ok := target.Addr().Interface().(*json.RawMessage); ok { // for the handler to read
		*p = raw
		return nil
	}
	if target.Kind() == reflect.Pointer {
		if string(raw) == "null" && required {
			return nil
		}
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	switch target.Kind() {
	case reflect.String:
		if raw[0] != '"' {
			return problemf(CodeWrongType, path, "This must be a string.")
		}
		s := rawjson.String(raw)
		if strings.ContainsRune(s, utf8.RuneError) && !strings.ContainsRune(string(raw), utf8.RuneError) {
			return problemf(CodeInvalidCharacter, path, "It has half a surrogate pair (\\ud800 to \\udfff). Write the whole character.")
		}
		target.SetString(s)
	case reflect.Int:
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			return problemf(CodeWrongType, path, "This must be a whole number, in digits.")
		}
		target.SetInt(int64(n))
	case reflect.Float64:
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || raw[0] == '"' {
			return problemf(CodeWrongType, path, "This must be a number.")
		}
		target.SetFloat(n)
	case reflect.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return problemf(CodeWrongType, path, "This must be true or false.")
		}
		target.SetBool(raw[0] == 't')
	default:
		panic(fmt.Sprintf("server: no request body has a field of type %s yet", target.Type())) // a test binds every type
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip shortens a client's text for a problem's detail.
func clip(s string) string { return clipTo(s, 40) }

func clipTo(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
