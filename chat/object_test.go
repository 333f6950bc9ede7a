package chat

import (
	"encoding/json"
	"testing"
)

// An object that is taken apart and put together again is the same, but for
// spaces between its members and for escapes in its names.
func TestObject(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{}`:                                 `{}`,
		` { "a" : [ 1 , 2 ] , "b":{ } } `:    `{"a":[ 1 , 2 ],"b":{ }}`,
		`{"a":1,"a":1.0}`:                    `{"a":1,"a":1.0}`,
		`{"\u0061":"\u0061","":null}`:        `{"a":"\u0061","":null}`,
		`{"\"\\":0,"\n<&>":0,"é\u00e9🌳":[]}`: `{"\"\\":0,"\n<&>":0,"éé🌳":[]}`,
	} {
		if got := string(AppendObject(nil, Members(json.RawMessage(given)))); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
	if got := string(AppendObject(nil, []Member{{"a", nil}, {"b", json.RawMessage(`1`)}, {"c", nil}})); got != `{"b":1}` {
		t.Errorf("with members that are left out: %s", got)
	}
}
