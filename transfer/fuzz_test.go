package transfer

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzChatGPT(f *testing.F)   { fuzzFormat(f, "chatgpt", "chatgpt.json", "demo.json") }
func FuzzClaude(f *testing.F)    { fuzzFormat(f, "claude", "claude.json") }
func FuzzLibreChat(f *testing.F) { fuzzFormat(f, "librechat", "librechat.json") }
func FuzzOpenWebUI(f *testing.F) { fuzzFormat(f, "openwebui", "openwebui.json") }
func FuzzChatbotUI(f *testing.F) { fuzzFormat(f, "chatbot-ui", "chatbot-ui.json") }
func FuzzOASST(f *testing.F)     { fuzzFormat(f, "oasst", "oasst.jsonl") }

// fuzzFormat feeds a format's parser with what resembles the fixtures. Whatever
// it reads, it must not panic, all that it yields must be what the store takes,
// and the same input must give the same again.
func fuzzFormat(f *testing.F, name string, fixtures ...string) {
	var under format
	for _, one := range formats {
		if one.Name() == name {
			under = one
		}
	}
	for _, file := range fixtures {
		data, err := os.ReadFile(filepath.Join("..", "testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		// Elements one by one are easier to change into something telling.
		err = eachElement(newInput(f.Context(), bytes.NewReader(data), func(Note) {}), func(_ string, raw json.RawMessage) error {
			f.Add([]byte(raw))
			return nil
		})
		if err != nil && filepath.Ext(file) == ".json" {
			f.Fatal(err)
		}
	}
	for _, seed := range []string{"", "[", "{}", "[[]]", "null", `"`, `{"a":`, "[{},{}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first := parsed(t, under, data)
		for _, n := range first.notes {
			if n.Kind == "" || n.Detail == "" || strings.ContainsAny(n.Place, "\n\x00") {
				t.Errorf("note %+v", n)
			}
		}
		second := parsed(t, under, data)
		if show(name, first) != show(name, second) {
			t.Error("the same input gave two different results")
		}
	})
}

// FuzzImport feeds whole files, recognized by their content.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("../testdata/*.json*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			f.Fatal(err)
		}
		head, err := io.ReadAll(io.LimitReader(in, 4096))
		in.Close()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(head))
	}
	f.Add(zipMagic)
	f.Fuzz(func(t *testing.T, data string) {
		var b bundles
		report, err := Import(t.Context(), &b, strings.NewReader(data), Options{})
		if err == nil && report.Format == "" {
			t.Error("no error and no format")
		}
		for _, one := range b {
			if err := checkBundle(one); err != nil {
				t.Error(err)
			}
			checkBodies(t, one)
		}
	})
}
