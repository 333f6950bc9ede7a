package sdk

import "encoding/json"

// A Delta is a piece of an answer of chat completions that is still streaming. All pieces
// together are the answer.
type Delta struct {
	Reasoning, Text, Refusal string
	Calls                    []json.RawMessage // pieces of calls, which package llm has numbered; or whole calls
}

// AppendEvent appends a server-sent event; one without a name where name is "".
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
