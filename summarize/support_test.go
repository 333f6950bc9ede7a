package summarize

import "encoding/json"

// messageBody is a message that says text.
func messageBody(role, text string) json.RawMessage {
	body, err := encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, text})
	if err != nil {
		panic(err)
	}
	return body
}
