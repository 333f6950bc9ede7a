package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestProviderThatIsOverrun holds that a client hears of a provider's limit as it
// would from the provider, and when to come back.
func TestProviderThatIsOverrun(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/responses": `{"model":"wood","input":"hi"}`, "/chat/completions": `{"model":"wood","messages":[{"role":"user","content":"hi"}]}`,
	} {
		for _, test := range []struct {
			after time.Duration
			want  string
		}{{7 * time.Second, "7"}, {0, "1"}} {
			a := newAPI(t, llmtest.FailWith(llmtest.Failure{Status: 429, Message: "slow down", RetryAfter: test.after}))
			status, got, header := a.send("acme", "POST", path, body)
			if status != 429 || header.Get("Retry-After") != test.want || header.Get("X-Should-Retry") != "" ||
				!strings.Contains(got, `"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"`) {
				t.Errorf("%s: %d after %s: %s", path, status, header.Get("Retry-After"), got)
			}
		}
	}
}

// TestMeaningOfOpenResponses holds what Open Responses wants of a server: each of
// its requests is served, and a Response has every member.
func TestMeaningOfOpenResponses(t *testing.T) {
	t.Parallel()
	const (
		tools = `"tools":[{"type":"function","name":"get_weather","description":"Weather","parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}}]`
		png   = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
	)
	call := llmtest.CallTools(llmtest.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"location":"San Francisco, CA"}`})
	said := func(role, content string) string {
		return `{"type":"message","role":"` + role + `","content":` + content + `}`
	}
	for _, test := range []struct {
		name   string
		does   llmtest.Behaviour
		body   string
		output string
		prompt string // what the model is given
	}{
		{"basic-response", llmtest.Answer("Hello there, friend."), `"input":[` + said("user", `"Say hello."`) + `]`, "message", "Say hello."},
		{"streaming-response", llmtest.Answer("1 2 3 4 5"), `"stream":true,"input":[` + said("user", `"Count."`) + `]`, "message", "Count."},
		{"system-prompt", llmtest.Answer("Arr."), `"input":[` + said("system", `"You are a pirate."`) + "," + said("user", `"Say hello."`) + `]`, "message", `{"role":"system","content":"You are a pirate."}`},
		{"tool-calling", call, tools + `,"input":[` + said("user", `"Weather?"`) + `]`, "function_call", "Weather?"},
		{"function-call-roundtrip", llmtest.Answer("Sunny."), tools + `,"input":[` + said("user", `"Weather?"`) + `,{"type":"function_call","call_id":"c","name":"get_weather","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"22"}]`,
			"message", `"tool_call_id":"c"`},
		{"image-input", llmtest.Answer("A dot."), `"input":[` + said("user", `[{"type":"input_text","text":"What?"},{"type":"input_image","image_url":"`+png+`"}]`) + `]`, "message", `"image_url":{"url":"data:image/png`},
		{"file-input", llmtest.Answer("A text."), `"input":[` + said("user", `[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,aGk="}]`) + `]`, "message", "a.txt"},
		{"multi-turn", llmtest.Answer("Alice."), `"input":[` + said("user", `"I am Alice."`) + "," + said("assistant", `"Hello Alice!"`) + "," + said("user", `"Who am I?"`) + `]`, "message", "Hello Alice!"},
		{"assistant-phase", llmtest.Answer("Alice."), `"input":[` + said("user", `"I am Alice."`) + `,{"type":"message","role":"assistant","phase":"commentary","content":"Hm."},` + said("user", `"Who am I?"`) + `]`, "message", "Hm."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, test.does, llmtest.Answer("And on."))
			got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood",`+test.body+`}`)
			if strings.Contains(test.body, `"stream":true`) {
				got = strings.TrimPrefix(final(got), `"response":`)
				got = strings.TrimSuffix(got, "}")
			}
			var r map[string]any
			if err := json.Unmarshal([]byte(got), &r); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			for _, member := range strings.Fields(`id object created_at completed_at status background error incomplete_details instructions max_output_tokens max_tool_calls model output
				parallel_tool_calls previous_response_id conversation prompt_cache_key safety_identifier user service_tier reasoning store temperature top_p top_logprobs presence_penalty
				frequency_penalty text tool_choice tools truncation usage metadata`) {
				if _, ok := r[member]; !ok {
					t.Errorf("the response lacks %s", member)
				}
			}
			for _, tool := range r["tools"].([]any) {
				for _, member := range []string{"description", "parameters", "strict"} {
					if _, ok := tool.(map[string]any)[member]; !ok {
						t.Errorf("a tool lacks %s", member)
					}
				}
			}
			output, _ := r["output"].([]any)
			if len(output) != 1 || output[0].(map[string]any)["type"] != test.output || r["status"] != "completed" || !strings.Contains(a.prompt(), test.prompt) {
				t.Errorf("%s; the model was given %s", got, a.prompt())
			}
			if test.output == "message" {
				next := a.create(`{"model":"wood","previous_response_id":"` + r["id"].(string) + `","input":"On?"}`)
				if next.Output[0].Content[0].Text != "And on." || !strings.Contains(a.prompt(), test.prompt) {
					t.Errorf("%+v after %s", next, a.prompt())
				}
			}
		})
	}
	a := newAPI(t)
	compacted := a.get("POST", "/responses/compact", `{"model":"wood","input":[`+said("user", `"My name is Alice, and I like hedges of hazel."`)+","+said("assistant", `"Hello Alice!"`)+`]}`)
	if output := compacted["output"].([]any); compacted["object"] != "response.compaction" || compacted["usage"] == nil || output[len(output)-1].(map[string]any)["encrypted_content"] == "" {
		t.Errorf("%v", compacted)
	}
	a.ask(400, "acme", "POST", "/responses/compact", `{"input":"hi"}`)
}
