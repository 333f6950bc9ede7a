package wire

import (
	"encoding/json"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Response is an answer in the form of the Responses API. It has every member
// that a client may require.
type Response struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	CreatedAt   int64  `json:"created_at"`
	CompletedAt *int64 `json:"completed_at"`
	Status      Status `json:"status"`
	Echo
	Error      json.RawMessage `json:"error"`
	Incomplete json.RawMessage `json:"incomplete_details"`
	Output     []Item          `json:"output"`
	Usage      *Usage          `json:"usage"`
}

// An Echo has what a Response repeats of its request. It is stored beside the
// answer, so that a later reading gives the same Response.
type Echo struct {
	Model              string            `json:"model"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       *conversationRef  `json:"conversation"`
	Instructions       *string           `json:"instructions"`
	Tools              []json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	MaxToolCalls       *int              `json:"max_tool_calls"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Temperature        float64           `json:"temperature"`
	TopP               float64           `json:"top_p"`
	TopLogprobs        int               `json:"top_logprobs"`
	PresencePenalty    float64           `json:"presence_penalty"`
	FrequencyPenalty   float64           `json:"frequency_penalty"`
	Text               echoText          `json:"text"`
	Reasoning          echoReasoning     `json:"reasoning"`
	Truncation         string            `json:"truncation"`
	Store              bool              `json:"store"`
	Background         bool              `json:"background"`
	ServiceTier        string            `json:"service_tier"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	User               *string           `json:"user"`
	Metadata           map[string]string `json:"metadata"`
}

type conversationRef struct {
	ID string `json:"id"`
}

type echoText struct {
	Format    json.RawMessage `json:"format"`
	Verbosity string          `json:"verbosity,omitempty"`
}

type echoReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// NewEcho is that of a request with nothing but a model.
func NewEcho(model string) Echo {
	return Echo{
		Model: model, Tools: []json.RawMessage{}, ToolChoice: json.RawMessage(`"auto"`), ParallelToolCalls: true, Temperature: 1, TopP: 1,
		Text: echoText{Format: json.RawMessage(`{"type":"text"}`)}, Truncation: "disabled", Store: true, ServiceTier: "default", Metadata: map[string]string{},
	}
}

// MaxEcho is how many bytes of an echo are stored beside an answer, whose
// metadata also says how it ended.
const MaxEcho = 60 << 10

// Fit cuts what an echo repeats, where that is too much to be stored: what the tools say of
// themselves, the instructions and the schema of the text. The names of the tools stay. It
// tells whether what is left can be stored.
func (e *Echo) Fit() bool {
	if len(chat.MustMarshal(e)) <= MaxEcho {
		return true
	}
	for i, raw := range e.Tools {
		e.Tools[i] = chat.WithMember(chat.WithMember(chat.WithMember(raw, "description", null), "parameters", null), "format", nil)
	}
	e.Instructions = nil
	if chat.MemberOf(e.Text.Format, "schema") != nil {
		e.Text.Format = chat.WithMember(chat.WithMember(e.Text.Format, "schema", json.RawMessage("{}")), "description", null)
	}
	return len(chat.MustMarshal(e)) <= MaxEcho
}

// Usage counts tokens. Those that were cached are of the input, those of the reasoning
// of the output.
type Usage struct{ Input, Cached, Output, Reasoning int }

// MarshalJSON returns the usage of a Response.
func (u Usage) MarshalJSON() ([]byte, error) { return u.json("input", "output"), nil }

// completion is the usage of a chat completion.
func (u *Usage) completion() json.RawMessage {
	if u == nil {
		u = &Usage{}
	}
	return u.json("prompt", "completion")
}

func (u Usage) json(input, output string) json.RawMessage {
	return sdk.JSON(input+"_tokens", u.Input, input+"_tokens_details", sdk.JSON("cached_tokens", u.Cached, "cache_write_tokens", 0),
		output+"_tokens", u.Output, output+"_tokens_details", sdk.JSON("reasoning_tokens", u.Reasoning), "total_tokens", u.Input+u.Output)
}

// A Turn has what is known of an answer before a model is called.
type Turn struct {
	Node       NodeID // that the answer has, or will have
	CreatedAt  time.Time
	Echo       Echo
	Compaction *Compaction // that comes before the answer; nil for none
}

// A Status says how far an answer is, or an item of it.
type Status string

// Statuses of a Response. An item is InProgress, Completed or Cut.
const (
	Queued     Status = "queued"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Cut        Status = "incomplete"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

// An End says how an answer ended.
type End struct {
	Status       Status        // Completed, Failed or Cancelled
	At           time.Time     // when
	Message      *chat.Message // the stored answer; nil for none
	FinishReason string        // the model's: stop, length, tool_calls, content_filter, or another word
	Usage        *Usage        // nil where nobody counted
	Error        ErrorBody     // why it failed
}

// status is how the answer ended, and why it is incomplete; "" where it isn't.
func (e End) status() (_ Status, incomplete string) {
	switch {
	case e.Status != Completed:
		return e.Status, ""
	case e.FinishReason == "length":
		return Cut, "max_output_tokens"
	case e.FinishReason == "content_filter":
		return Cut, e.FinishReason
	}
	return Completed, ""
}

// lastItem is the status of the last item. Those before it are complete.
func (e End) lastItem() Status {
	if status, _ := e.status(); status == Completed {
		return Completed
	}
	return Cut
}

// Begun returns the Response of an answer that is not complete yet.
func (t Turn) Begun(status Status) Response {
	return Response{
		ID: t.Node.ResponseID(), Object: "response", CreatedAt: t.CreatedAt.Unix(), Status: status, Echo: t.Echo, Output: []Item{},
	}
}

// Ended returns the Response of an answer that has ended. It is the same at the
// end of a stream, for a request without a stream, and for a later reading.
func (t Turn) Ended(end End) Response {
	status, incomplete := end.status()
	r := t.Begun(status)
	r.Usage = end.Usage
	switch status {
	case Completed:
		at := end.At.Unix()
		r.CompletedAt = &at
	case Cut:
		r.Incomplete = sdk.JSON("reason", incomplete)
	case Failed:
		r.Error = sdk.JSON("code", end.Error.failure(), "message", end.Error.Message)
	}
	if t.Compaction != nil {
		r.Output = append(r.Output, t.Compaction.Item())
	}
	if end.Message != nil {
		r.Output = append(r.Output, t.Items(end, Note{})...)
	}
	if r.Usage == nil && r.Error == nil && status != Cancelled {
		r.Usage = &Usage{} // clients read it without asking whether it is there
	}
	return r
}
