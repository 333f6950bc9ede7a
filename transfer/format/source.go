package format

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// AddSource adds to sound metadata what a message was in its program, if there is
// room for it.
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

// SourceMetadata returns the source's metadata, or nil where the source is empty.
func SourceMetadata(s Source) json.RawMessage {
	if len(s) == 0 {
		return nil
	}
	return s.Metadata()
}

// Source is what Coppice has no place for: what a conversation or message was in
// its program. It becomes the member "source" of the metadata.
type Source map[string]any

// Put adds a value, unless the value is empty.
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

// Copy adds the named members of o.
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
