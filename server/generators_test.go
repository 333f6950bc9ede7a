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

// TestEventsAreTyped holds that streams are described by the schema ReplyEvent,
// and that this tells each event by its name.
func TestEventsAreTyped(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	event := doc.Components.Schemas["ReplyEvent"].Value
	told := event.Discriminator
	if told == nil || told.PropertyName != "event" || len(told.Mapping) != len(event.OneOf) {
		t.Fatalf("%+v", told)
	}
	for name, of := range told.Mapping {
		schema := doc.Components.Schemas[of.Ref[strings.LastIndex(of.Ref, "/")+1:]]
		if !slices.ContainsFunc(event.OneOf, func(s *openapi3.SchemaRef) bool { return s.Ref == of.Ref }) {
			t.Errorf("%s is none of ReplyEvent's", of.Ref)
		}
		if got := schema.Value.Properties["event"].Value.Const; got != name {
			t.Errorf("%s has the name %v, and is mapped from %s", of.Ref, got, name)
		}
		if data := schema.Value.Properties["data"]; data.Ref == "" {
			t.Errorf("%s: its data has no schema of its own", name)
		}
		if needsID := name != "stream.closed"; slices.Contains(schema.Value.Required, "id") != needsID {
			t.Errorf("%s: that it has an id must be %t", name, needsID)
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
