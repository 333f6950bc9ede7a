package format_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// What has room in the metadata is added, by name, to the last byte.
func TestAddSourcesAddsWhatHasRoom(t *testing.T) {
	t.Parallel()
	metadata := []byte(`{"tag":"t","source":{"b":"old"}}`)
	rest := tree.MaxMetadataBytes - len(`{"source":{"a":"","b":"new"},"tag":"t"}`)
	for size, want := range map[int][]string{rest: {"a", "b"}, rest + 1: {"b"}} {
		got := format.AddSources(metadata, format.Source{"a": strings.Repeat("x", size), "b": "new", "c": strings.Repeat("y", size)})
		from := format.ObjectOf(got).Object("source")
		if names := slices.Sorted(maps.Keys(from)); !slices.Equal(names, want) || from.Str("b") != "new" || size == rest && len(got) != tree.MaxMetadataBytes {
			t.Errorf("of %d bytes: %v in %d bytes", size, names, len(got))
		}
	}
}
