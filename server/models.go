package server

// A Model is the schema Model.
type Model struct {
	Name             string      `json:"name"`
	Aliases          []string    `json:"aliases"`            // other names by which requests may ask for it
	MaxContextTokens int         `json:"max_context_tokens"` // what it takes, its answer included
	Replies          bool        `json:"replies"`            // it answers
	Summaries        bool        `json:"summaries"`          // it writes summaries
	Default          bool        `json:"default"`            // it answers where a request names no model
	Price            *ModelPrice `json:"price"`              // nil where it isn't known
}

// A ModelPrice is what a million tokens cost, in the currency of the server's
// prices.
type ModelPrice struct {
	Prompt     float64 `json:"prompt"`
	Completion float64 `json:"completion"`
}

// listModels answers with all of them, as a server has but a few.
func listModels(r *Request) (Answer, error) {
	list := struct {
		Data []Model `json:"data"`
		Next *string `json:"next_cursor"`
	}{Data: r.server.cfg.Models}
	if list.Data == nil {
		list.Data = []Model{}
	}
	return answerStruct(list)
}
