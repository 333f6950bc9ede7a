package summarize

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

// override sets what a JSON object names. encoding/json by itself would take
// "Keep_Ratio" and null, and not say which setting it can't read.
func (s *Settings) override(object json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return settingFault("", "They must be a JSON object.")
	}
	names, fields := s.fields()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, ok := fields[name]
		if !ok {
			return settingFault(fault.Clip(name), "There is no setting of this name. The settings are %s.", strings.Join(names, ", "))
		}
		if reason := setField(field, members[name]); reason != "" {
			return settingFault(name, "%s", reason)
		}
	}
	return nil
}

// fields gives the settings by name, and their names in order.
func (s *Settings) fields() (names []string, fields map[string]reflect.Value) {
	fields = map[string]reflect.Value{}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() {
			name := field.Tag.Get("json")
			names, fields[name] = append(names, name), v.Field(i)
		}
	}
	return names, fields
}

// setField sets a setting from its JSON value. Where that can't be, it says why
// in a sentence for whoever gave it.
func setField(field reflect.Value, value json.RawMessage) (reason string) {
	switch {
	case string(value) == "null":
		return "It is null. Leave it out to have the server's."
	case string(value) == `""` && field.Type() == reflect.TypeFor[DigestUse]():
		return "It must be when_needed, always or never."
	case json.Unmarshal(value, field.Addr().Interface()) == nil:
		return ""
	case field.Kind() == reflect.Int:
		return "It must be a whole number."
	case field.Kind() == reflect.Float64:
		return "It must be a number."
	case field.Kind() == reflect.Bool:
		return "It must be true or false."
	}
	return "It must be a string."
}
