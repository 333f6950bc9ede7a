package mcp

import (
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf gives the schema of a tool's arguments or results. Nothing in them is
// null: what isn't there is left out, and strict clients warn of a list that may be
// null.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Content](): {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "object"}}}},
		reflect.TypeFor[Calls]():   {Type: "array", Items: &jsonschema.Schema{Type: "object"}},
	}})
	if err != nil {
		panic(err) // the type is one of this package
	}
	withoutNull(s)
	return s
}

func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	withoutNull(s.Items)
}
