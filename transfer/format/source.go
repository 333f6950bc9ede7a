package format

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// AddSource adds to sound metadata what a message was in its program, if there is
// room for it.
func AddSource(metadata json.RawMessage, name string, value any) json.RawMessage {
	return AddSources(metadata, Source{name: value})
}

// AddSources adds to sound metadata what a message was in its program: by name, as
// far as there is room.
func AddSources(metadata json.RawMessage, add Source) json.RawMessage {
	if len(add) == 0 {
		return metadata
	}
	all := ObjectOf(metadata)
	if all == nil {
		all = Object{}
	}
	from := all.Object("source")
	if from == nil {
		from = Object{}
	}
	all["source"] = EncodeObject(from)
	size, added := len(EncodeObject(all)), false
	for _, name := range slices.Sorted(maps.Keys(add)) {
		one := Object{name: chat.MustMarshal(add[name])}
		more := len(EncodeObject(one)) - len("{}")
		if was, there := from[name]; there {
			more -= len(EncodeObject(Object{name: was})) - len("{}")
		} else if len(from) > 0 {
			more += len(",")
		}
		if size+more <= tree.MaxMetadataBytes {
			from[name], added = one[name], true
			size += more
		}
	}
	if !added {
		return metadata
	}
	all["source"] = EncodeObject(from)
	return EncodeObject(all)
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
	return chat.MustMarshal(map[string]any{"source": s})
}
