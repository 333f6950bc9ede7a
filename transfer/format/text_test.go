package format

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// Providers take letters, digits, _ and - in a function's name, and 64 at most.
func TestToolName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "tool", "look_up-2": "look_up-2", "mcp.files/read file": "mcp_files_read_file", "wëb": "w_b",
		strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("x", 65): strings.Repeat("x", 64),
	} {
		got := toolName(name)
		check.That(t, got == want, "%q becomes %q, want %q", name, got, want)
	}
}

// What is cut off ends with a whole character.
func TestCutEnd(t *testing.T) {
	t.Parallel()
	for keep, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé🌳", "aé🌳"} {
		got := CutEnd("aé🌳", keep)
		check.That(t, got == want, "to %d bytes: %q, want %q", keep, got, want)
	}
}

// Values are taken apart as encoding/json does, wherever the buffers end in them.
func FuzzScan(f *testing.F) {
	for _, value := range []string{`{}`, ` [ ] `, `{"a":"\\","b":"\"","\u0063":[1,{"d":"}"}],"e":-1.5e3}`, `["\\\"",null,true,[[]],"]"]`, `{"a":1,"a":2}`, `"\ud83d\ude00\ud83d"`} {
		f.Add([]byte(value), 3)
	}
	f.Fuzz(func(t *testing.T, value []byte, size int) {
		if value = bytes.TrimSpace(value); !json.Valid(value) {
			return
		}
		var w walker
		read, ended := 0, false
		for size = max(size, 1); read < len(value) && !ended; {
			n := 0
			n, ended = w.walk(value[read:min(read+size, len(value))])
			read += n
		}
		check.Need(t, read == len(value) && (ended || w.bare), "%s ends at %d", value, read)
		same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
		switch value[0] {
		case '{':
			var want map[string]json.RawMessage
			check.NoError(t, json.Unmarshal(value, &want))
			if got := ObjectUpTo(value, len(value)); !maps.EqualFunc(got, want, same) {
				t.Fatalf("%s has the members %s", value, got)
			}
		case '[':
			var want, got []json.RawMessage
			check.NoError(t, json.Unmarshal(value, &want))
			for _, element := range ElementsOf(value) {
				got = append(got, element)
			}
			check.Need(t, slices.EqualFunc(got, want, same), "%s has the elements %s", value, got)
		case '"':
			var want string
			check.NoError(t, json.Unmarshal(value, &want))
			if got, ok := StringOf(value); !ok || got != want {
				t.Fatalf("%s is read as %q", value, got)
			}
		}
	})
}
