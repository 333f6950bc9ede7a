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

// withoutDigest are the settings of a Service whose digest never stands in.
func withoutDigest(s Settings) Settings {
	s.Digest = DigestNever
	return s
}

// sparse counts few tokens, so that what a witness has seen is never too long.
type sparse struct{}

func (sparse) Count(text string) int { return len(text) / 20 }
