package formattest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
)

// Changed returns a file, JSON or JSONL, with a few values changed.
func Changed(rt *rapid.T, data []byte) []byte {
	whole, lines := decoded(data)
	for range rapid.IntRange(1, 8).Draw(rt, "changes") {
		whole = change(rt, whole, whole)
	}
	return encoded(whole, lines)
}

// decoded gives the value of a JSON file, or the list of those of the lines.
func decoded(data []byte) (whole any, lines bool) {
	if json.Unmarshal(data, &whole) == nil {
		return whole, false
	}
	var all []any
	for line := range bytes.Lines(data) {
		var v any
		if json.Unmarshal(line, &v) == nil {
			all = append(all, v)
		}
	}
	return all, true
}

// encoded writes a file of the value, or of its elements as lines.
func encoded(whole any, lines bool) []byte {
	all, ok := whole.([]any)
	if !lines || !ok {
		return chat.MustMarshal(whole)
	}
	var out []byte
	for _, v := range all {
		out = append(append(out, chat.MustMarshal(v)...), '\n')
	}
	return out
}

// names gives the names of all members in v.
func names(v any, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, below := range v {
			names(below, into)
		}
	case map[string]any:
		for name, below := range v {
			into[name] = true
			names(below, into)
		}
	}
}

// renamed gives v with another name for the members of a name.
func renamed(v any, name string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = renamed(below, name)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for was, below := range v {
			if was == name {
				was = "x" + was
			}
			out[was] = renamed(below, name)
		}
		return out
	}
	return v
}

// change changes one value somewhere in v.
func change(rt *rapid.T, whole, v any) any {
	deeper := rapid.IntRange(0, 9).Draw(rt, "deeper") > 0
	switch v := v.(type) {
	case []any:
		if !deeper || len(v) == 0 {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(rt, "element")
		if rapid.IntRange(0, 9).Draw(rt, "twice") == 0 {
			return append(slices.Clone(v), v[i])
		}
		v[i] = change(rt, whole, v[i])
		return v
	case map[string]any:
		if !deeper || len(v) == 0 {
			break
		}
		names := slices.Sorted(maps.Keys(v))
		name := rapid.SampledFrom(names).Draw(rt, "member")
		if rapid.IntRange(0, 9).Draw(rt, "gone") == 0 {
			delete(v, name)
			return v
		}
		v[name] = change(rt, whole, v[name])
		return v
	}
	switch rapid.IntRange(0, 3).Draw(rt, "instead") {
	case 0: // something that is elsewhere
		return elsewhere(rt, whole)
	default:
		return rapid.SampledFrom([]any{
			nil, true, false, 0, -1, 1e300, 1760000000.5, "", " ", "x", "a\x00b", "1", "q1", "m1", "user", "tool", "assistant",
			[]any{}, map[string]any{}, []any{nil}, []any{"x"}, map[string]any{"type": "text"}, map[string]any{"type": "tool_use", "name": "f"},
			map[string]any{"type": "tool_result", "content": []any{5}}, map[string]any{"text": "x"},
		}).Draw(rt, "value")
	}
}

// elsewhere copies a value out of whole.
func elsewhere(rt *rapid.T, whole any) any {
	v := whole
	for range rapid.IntRange(1, 8).Draw(rt, "depth") {
		switch at := v.(type) {
		case []any:
			if len(at) > 0 {
				v = at[rapid.IntRange(0, len(at)-1).Draw(rt, "from")]
			}
		case map[string]any:
			if len(at) > 0 {
				v = at[rapid.SampledFrom(slices.Sorted(maps.Keys(at))).Draw(rt, "from")]
			}
		}
	}
	var copied any
	_ = json.Unmarshal(chat.MustMarshal(v), &copied) // as encode wrote it
	return copied
}
