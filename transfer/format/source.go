package format

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// AddSource says one thing more of what the message was in its program, if
// sound metadata has room for it.
func AddSource(metadata json.RawMessage, name string, value any) json.RawMessage {
	all := ObjectOf(metadata)
	if all == nil {
		all = Object{}
	}
	from := all.Object("source")
	if from == nil {
		from = Object{}
	}
	from[name] = Encode(value)
	all["source"] = EncodeObject(from)
	if raw := EncodeObject(all); len(raw) <= tree.MaxMetadataBytes {
		return raw
	}
	return metadata
}

// SourceMetadata is the source's metadata, or nil where nothing is known.
func SourceMetadata(s Source) json.RawMessage {
	if len(s) == 0 {
		return nil
	}
	return s.Metadata()
}

// Source is what a conversation or message was in its program, besides what
// Coppice has a place for. It becomes the member "source" of the metadata.
type Source map[string]any

// Put adds a value that says something.
func (s Source) Put(name string, value any) Source {
	switch v := value.(type) {
	case nil:
		return s
	case string:
		if v == "" {
			return s
		}
	case bool:
		if !v {
			return s
		}
	case json.RawMessage:
		switch strings.TrimSpace(string(v)) {
		case "", "null", `""`, "false", "[]", "{}":
			return s
		}
	case []string:
		if len(v) == 0 {
			return s
		}
	}
	s[name] = value
	return s
}

// Copy puts the members of o that have the names.
func (s Source) Copy(o Object, names ...string) Source {
	for _, name := range names {
		s.Put(name, o[name])
	}
	return s
}

// Metadata writes s as a metadata object.
func (s Source) Metadata() json.RawMessage {
	return Encode(map[string]any{"source": s})
}
