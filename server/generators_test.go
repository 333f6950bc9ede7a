package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestNoMemberHasADefault holds that no member of a request's body has a
// default. Generators take a member with a default for one that is always
// there, and then ask their users to send it.
func TestNoMemberHasADefault(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	seen, members := map[*openapi3.Schema]bool{}, 0
	var look func(path string, ref *openapi3.SchemaRef)
	look = func(path string, ref *openapi3.SchemaRef) {
		if ref == nil || seen[ref.Value] {
			return
		}
		s := ref.Value
		seen[s] = true
		if s.Default != nil {
			t.Errorf("%s has the default %v: say it in the description", path, s.Default)
		}
		for name, p := range s.Properties {
			members++
			look(path+"."+name, p)
		}
		for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
			look(path, part)
		}
		look(path+"[]", s.Items)
	}
	for name, schema := range doc.Components.Schemas {
		look(name, schema)
	}
	if members < 100 {
		t.Errorf("only %d members were looked at", members)
	}
}

// TestEventsAreTyped holds that streams are described by the schemas ReplyEvent and
// WatchEvent, and that these tell each event by its name.
func TestEventsAreTyped(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"ReplyEvent", "WatchEvent"} {
		event := doc.Components.Schemas[of].Value
		told := event.Discriminator
		if told == nil || told.PropertyName != "event" {
			t.Fatalf("%s: %+v", of, told)
		}
		names := 0
		for _, kind := range event.OneOf {
			members := kind.Value.Properties
			each := members["event"].Value.Enum
			if len(each) == 0 {
				each = []any{members["event"].Value.Const}
			}
			names += len(each)
			for _, name := range each {
				if got := told.Mapping[name.(string)].Ref; got != kind.Ref {
					t.Errorf("%s: %s is mapped to %q, want %q", of, name, got, kind.Ref)
				}
				if needsID := name != "stream.closed"; slices.Contains(kind.Value.Required, "id") != needsID {
					t.Errorf("%s: that %s has an id must be %t", of, name, needsID)
				}
			}
			if data := members["data"]; data.Ref == "" {
				t.Errorf("%s: the data of %v has no schema of its own", of, each)
			}
		}
		if len(told.Mapping) != names {
			t.Errorf("%s maps %d names, and has %d events", of, len(told.Mapping), names)
		}
	}
	streams := 0
	for _, r := range specRoutes(t) {
		for _, answer := range r.spec.Responses.Map() {
			if media := answer.Value.Content["text/event-stream"]; media != nil {
				streams++
				want := "#/components/schemas/ReplyEvent"
				if strings.HasPrefix(r.operation, "watch") {
					want = "#/components/schemas/WatchEvent"
				}
				if media.Schema.Ref != want {
					t.Errorf("%s streams %q", r.operation, media.Schema.Ref)
				}
			}
		}
	}
	if streams != 4 {
		t.Errorf("%d streams, want those of createReply, readReply, watchTenant and watchConversation", streams)
	}
}
