package llmtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Behaviour is what the server does with one request. It streams if the
// client asked for a stream.
type Behaviour struct{ serve func(*exchange) }

// A ToolCall is a call of a function.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON
}

// Answer answers with a text, in pieces of a few words. A text of 1 MB works
// too.
func Answer(text string) Behaviour { return Chunks(split(text, max(12, len(text)/256))...) }

// Chunks answers with a text. A stream sends exactly these pieces.
func Chunks(pieces ...string) Behaviour { return answering(textReply(pieces...)) }

// Think sends reasoning in pieces of a few words, and then answers with a text.
func Think(reasoning, text string) Behaviour {
	r := textReply(split(text, 12)...)
	r.reasoning = reasoning
	return answering(r)
}

// Empty answers with an empty text.
func Empty() Behaviour { return answering(textReply()) }

// CallTools answers with tool calls, whose arguments come in small pieces.
func CallTools(calls ...ToolCall) Behaviour {
	return answering(reply{calls: calls, finishReason: "tool_calls"})
}

// SayAndCall answers with a text and then with tool calls.
func SayAndCall(text string, calls ...ToolCall) Behaviour {
	return answering(reply{pieces: split(text, 12), calls: calls, finishReason: "tool_calls"})
}

// Refuse answers with a refusal and no text.
func Refuse(text string) Behaviour { return answering(reply{refusal: text, finishReason: "stop"}) }

// Truncated answers with a text that is cut off by the limit of tokens.
func Truncated(text string) Behaviour {
	r := textReply(split(text, 12)...)
	r.finishReason = "length"
	return answering(r)
}

// Echo answers with the content of the request's last message, as a summarizer
// does that repeats its input, wrapper included.
func Echo() Behaviour {
	return Reply(func(req Request) Behaviour {
		var m struct{ Content string }
		_ = json.Unmarshal(req.Messages[len(req.Messages)-1], &m) // "" if it is no text
		return Answer(m.Content)
	})
}

// Reply chooses the behaviour by the request.
func Reply(choose func(Request) Behaviour) Behaviour {
	return Behaviour{func(x *exchange) { choose(x.req).serve(x) }}
}

// Slow delays a behaviour: it waits for d before the headers, and for d before
// each piece of a stream.
func Slow(d time.Duration, b Behaviour) Behaviour {
	return Behaviour{func(x *exchange) {
		x.pace = d
		if x.wait(d) {
			b.serve(x)
		}
	}}
}

// After returns a behaviour that begins when gate is closed. So a test can do
// something while a model works.
func After(gate <-chan struct{}, b Behaviour) Behaviour {
	return Behaviour{func(x *exchange) {
		select {
		case <-gate:
			b.serve(x)
		case <-x.gone:
		case <-x.closed:
		}
	}}
}

// A Failure is an error answer.
type Failure struct {
	Status        int           // of HTTP
	RetryAfter    time.Duration // of the Retry-After header, in whole seconds; 0 for none
	Type, Code    string        // of the error object; "" for null
	Message       string        // of the error object
	NotJSON       bool          // sends the message as plain text instead
	UnknownLength bool          // sends the body without its length, in chunks
}

// Fail answers with a status and the body that OpenAI sends with it. 429 asks
// the client to wait for a second. The message quotes the request, as messages
// of real providers do.
func Fail(status int) Behaviour {
	f := Failure{Status: status}
	switch {
	case status == http.StatusUnauthorized:
		f.Type, f.Code = "invalid_request_error", "invalid_api_key"
	case status == http.StatusTooManyRequests:
		f.Type, f.Code, f.RetryAfter = "requests", "rate_limit_exceeded", time.Second
	case status >= 500:
		f.Type = "server_error"
	default:
		f.Type = "invalid_request_error"
	}
	return Behaviour{func(x *exchange) {
		f := f
		f.Message = "It went wrong. Your request was " + string(x.req.Body)
		writeFailure(x.w, f)
	}}
}

// FailWith answers with a failure that the test describes.
func FailWith(f Failure) Behaviour {
	return Behaviour{func(x *exchange) { writeFailure(x.w, f) }}
}

// TooLong answers that the messages don't fit the model's window.
func TooLong() Behaviour {
	return FailWith(Failure{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens."})
}

// FailMidway begins to answer with a text. In the middle of a stream it sends
// an error object in place of the rest. A client that asked for no stream gets
// the error object with HTTP 200.
func FailMidway(text string) Behaviour {
	fault := Failure{Type: "server_error", Message: "The server had an error."}.body()
	return Behaviour{func(x *exchange) {
		if !x.req.Stream {
			x.start("application/json")
			x.write(fault)
			return
		}
		if x.sendHalf(text) {
			x.write("data: " + fault + "\n\n")
		}
	}}
}

// Raw answers with the given status, content type and body.
func Raw(status int, contentType, body string) Behaviour {
	return Behaviour{func(x *exchange) {
		x.w.Header().Set("Content-Type", contentType)
		x.w.WriteHeader(status)
		x.write(body)
	}}
}

func answering(r reply) Behaviour {
	return Behaviour{func(x *exchange) {
		if !x.req.Stream {
			x.start("application/json")
			x.write(r.whole(x.req.Model))
			return
		}
		x.start("text/event-stream")
		x.send(r.events(x.req.Model))
	}}
}

// send writes events at the exchange's pace; false means that nobody reads
// them.
func (x *exchange) send(events []string) bool {
	for i, event := range events {
		if i > 0 && x.pace > 0 && !x.wait(x.pace) {
			return false
		}
		if !x.write(event) {
			return false
		}
	}
	return true
}

func (f Failure) body() string {
	member := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return encode(map[string]any{"error": map[string]any{"message": f.Message, "type": member(f.Type), "param": nil, "code": member(f.Code)}})
}

func writeFailure(w http.ResponseWriter, f Failure) {
	body, contentType := f.body(), "application/json"
	if f.NotJSON {
		body, contentType = f.Message, "text/plain; charset=utf-8"
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	w.Header().Set("Content-Type", contentType)
	if !f.UnknownLength {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(f.Status)
	_, _ = strings.NewReader(body).WriteTo(w) // nobody to tell
}
