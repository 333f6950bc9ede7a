package format_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/chatbotui"
	"github.com/coppice-chat/coppice/transfer/format/chatbox"
	"github.com/coppice-chat/coppice/transfer/format/chatgpt"
	"github.com/coppice-chat/coppice/transfer/format/claude"
	"github.com/coppice-chat/coppice/transfer/format/claudecode"
	"github.com/coppice-chat/coppice/transfer/format/cline"
	"github.com/coppice-chat/coppice/transfer/format/codex"
	"github.com/coppice-chat/coppice/transfer/format/copilot"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/transfer/format/deepseek"
	"github.com/coppice-chat/coppice/transfer/format/gemini"
	"github.com/coppice-chat/coppice/transfer/format/grok"
	"github.com/coppice-chat/coppice/transfer/format/librechat"
	"github.com/coppice-chat/coppice/transfer/format/llamacpp"
	"github.com/coppice-chat/coppice/transfer/format/lmstudio"
	"github.com/coppice-chat/coppice/transfer/format/lobechat"
	"github.com/coppice-chat/coppice/transfer/format/messages"
	"github.com/coppice-chat/coppice/transfer/format/oasst"
	"github.com/coppice-chat/coppice/transfer/format/openwebui"
	"github.com/coppice-chat/coppice/transfer/format/pi"
	"github.com/coppice-chat/coppice/transfer/format/sillytavern"
	"github.com/coppice-chat/coppice/transfer/format/sweagent"
	"github.com/coppice-chat/coppice/transfer/format/taubench"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suites = []formattest.Suite{
	{Format: chatbotui.Format{}, Fixtures: []string{"chatbot-ui.json"}, Nodes: "*.history.*.messages.*", Sample: formattest.Sample{
		Before: `{"history":[{"id":1,"name":"T","messages":[`, Between: ",", After: `]}],"folders":[]}`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
	}},
	{Format: chatbox.Format{}, Fixtures: []string{"chatbox.json"}, Nodes: "*.%.messages.* *.%.threads.*.messages.* *.%.messageForksHash.%.lists.*.messages.*", Sample: formattest.Sample{
		Before: `{"session:c":{"id":"c","name":"T","messages":[`, Between: ",", After: `]}}`,
		Element: `{"id":"m%[1]d","p":%[2]d,"role":"user","content":"a"%[3]s}`,
		Text:    `{"id":"m","role":"user","content":"%s"}`,
		Blocks:  `{"id":"m","role":"assistant","contentParts":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool-call","toolCallId":"i%[1]d","toolName":"f"}`,
	}},
	{Format: chatgpt.Format{}, Fixtures: []string{"chatgpt.json"}, Nodes: "*.mapping.%", Sample: formattest.Sample{
		Before: `[{"title":"T","create_time":1,"id":"c","current_node":"n1","mapping":{`, Between: ",", After: `}}]`,
		Element: `"n%[1]d":{"parent":"n%[2]d","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["a"]}}%[3]s}`,
		Text:    `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["%s"]}}}`,
		Blocks:  `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[%s]}}}`,
		Block:   `"a"`,
		Weight:  2,
	}},
	{Format: claude.Format{}, Fixtures: []string{"claude.json"}, Nodes: "*.chat_messages.*", Sample: formattest.Sample{
		Before: `[{"uuid":"c","name":"T","chat_messages":[`, Between: ",", After: `]}]`,
		Element: `{"uuid":"m%[1]d","sender":"human","text":"a","p":%[2]d%[3]s}`,
		Text:    `{"uuid":"m","sender":"human","text":"%s"}`,
		Blocks:  `{"uuid":"m","sender":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
	}},
	{Format: claudecode.Format{}, Fixtures: []string{"claude-code.jsonl"}, Nodes: "*", Sample: formattest.Sample{
		Before: `{"type":"user","uuid":"u0","sessionId":"c","message":{"role":"user","content":"q"}}` + "\n", Between: "\n", After: "\n",
		Element: `{"type":"user","uuid":"u%[1]d","parentUuid":"u%[2]d","sessionId":"c","message":{"role":"user","content":"a"}%[3]s}`,
		Text:    `{"type":"user","uuid":"u","sessionId":"c","message":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"assistant","uuid":"u","sessionId":"c","message":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
		Weight:  2,
	}},
	{Format: cline.Format{}, Fixtures: []string{"cline.json"}, Nodes: "*", Sample: formattest.Sample{
		Before: `[{"type":"say","say":"task","text":"q"},`, Between: ",", After: `]`,
		Element: `{"type":"say","say":"user_feedback","text":"a","p":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"type":"say","say":"user_feedback","text":"%s"}`,
		Blocks:  `{"type":"say","say":"user_feedback","text":"a","images":[%s]}`,
		Block:   `"data:a"`,
	}},
	{Format: codex.Format{}, Fixtures: []string{"codex.jsonl", "codex-bare.jsonl"}, Nodes: "*", Sample: formattest.Sample{
		Before: `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c"}}` + "\n", Between: "\n", After: "\n",
		Element: `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"a"}]},"p":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"type":"response_item","payload":{"type":"message","role":"user","content":"%s"}}`,
		Blocks:  `{"type":"response_item","payload":{"type":"message","role":"user","content":[%s]}}`,
		Block:   `{"text":"a"}`,
	}},
	{Format: copilot.Format{}, Fixtures: []string{"copilot.json", "copilot-log.jsonl"}, Nodes: "*.requests.*", Sample: formattest.Sample{
		Before: `{"sessionId":"c","requests":[`, Between: ",", After: `]}`,
		Element: `{"requestId":"r%[1]d","p":%[2]d,"message":{"text":"a"}%[3]s}`,
		Text:    `{"requestId":"r","message":{"text":"%s"}}`,
		Blocks:  `{"requestId":"r","message":{"text":"a"},"response":[%s]}`,
		Block:   `{"kind":"x"}`,
		Calls:   `{"kind":"toolInvocationSerialized","toolCallId":"i%[1]d","toolId":"f"}`,
	}},
	{Format: coppice.Format{}, Fixtures: []string{"coppice.jsonl", "coppice-unsound.jsonl"}, Nodes: "*.body", Sample: formattest.Sample{
		Before: `{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","title":"T","head_id":null,"metadata":{},"settings":{}}` + "\n", Between: "\n", After: "\n",
		Element: `{"type":"message","id":"01990000-0000-7000-8000-%012[1]d","parent_id":null,"body":{"role":"user","content":"a"},"p":%[2]d%[3]s}`,
		Text:    `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
	}},
	{Format: deepseek.Format{}, Fixtures: []string{"deepseek.json"}, Nodes: "*.mapping.%", Sample: formattest.Sample{
		Before: `[{"id":"c","title":"T","inserted_at":"2026-01-01T00:00:00Z","mapping":{`, Between: ",", After: `}}]`,
		Element: `"n%[1]d":{"parent":"n%[2]d","message":{"fragments":[{"type":"REQUEST","content":"a"}]}%[3]s}`,
		Text:    `"n":{"message":{"fragments":[{"type":"REQUEST","content":"%s"}]}}`,
		Blocks:  `"n":{"message":{"fragments":[%s]}}`,
		Block:   `{"type":"RESPONSE","content":"a"}`,
		Weight:  2,
	}},
	{Format: gemini.Format{}, Fixtures: []string{"gemini-takeout.json"}, Nodes: "*", Sample: formattest.Sample{
		Before: `[`, Between: ",", After: `]`,
		Element: `{"title":"Prompted a","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z","n":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"title":"Prompted %s","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z"}`,
		Blocks:  `{"title":"Prompted a","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z","safeHtmlItem":[%s]}`,
		Block:   `{"html":"a"}`,
		Weight:  2,
	}},
	{Format: grok.Format{}, Fixtures: []string{"grok.json"}, Nodes: "*.conversations.*.responses.*", Sample: formattest.Sample{
		Before: `{"conversations":[{"conversation":{"id":"c","title":"T"},"responses":[`, Between: ",", After: `]}]}`,
		Element: `{"response":{"_id":"r%[1]d","parent_response_id":"r%[2]d","sender":"human","message":"a"%[3]s}}`,
		Text:    `{"response":{"_id":"r","sender":"human","message":"%s"}}`,
		Blocks:  `{"response":{"_id":"r","sender":"human","message":"a","file_attachments":[%s]}}`,
		Block:   `{"fileName":"a"}`,
	}},
	{Format: librechat.Format{}, Fixtures: []string{"librechat.json"}, Nodes: "*.messages.* *.messages.*.^children", Sample: formattest.Sample{
		Before: `{"conversationId":"c","title":"T","messages":[`, Between: ",", After: `]}`,
		Element:   `{"messageId":"m%[1]d","parentMessageId":"m%[2]d","isCreatedByUser":true,"text":"a"%[3]s}`,
		Text:      `{"messageId":"m","isCreatedByUser":true,"text":"%s"}`,
		Blocks:    `{"messageId":"m","content":[%s]}`,
		Block:     `{"type":"text","text":"a"}`,
		Calls:     `{"type":"tool_call","tool_call":{"name":"f","id":"i%[1]d","output":"o"}}`,
		Nested:    `{"messageId":"m%[1]d","text":"a","children":[`,
		NestedEnd: `]}`,
	}},
	{Format: llamacpp.Format{}, Fixtures: []string{"llamacpp.jsonl"}, Nodes: "*.message *.messages.*", Sample: formattest.Sample{
		Before: `{"type":"session","id":"c","name":"T","currNode":"m1"}` + "\n", Between: "\n", After: "\n",
		Element: `{"type":"message","message":{"id":"m%[1]d","parent":"m%[2]d","role":"user","content":"a"%[3]s}}`,
		Text:    `{"type":"message","message":{"id":"m","role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","message":{"id":"m","role":"user","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Weight:  2,
	}},
	{Format: lmstudio.Format{}, Fixtures: []string{"lm-studio.json"}, Nodes: "*.messages.*", Sample: formattest.Sample{
		Before: `{"name":"T","createdAt":1760000000000,"systemPrompt":"","messages":[`, Between: ",", After: `]}`,
		Element: `{"versions":[{"role":"user","content":[{"type":"text","text":"a"}]}],"currentlySelected":0,"n":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"versions":[{"role":"user","content":[{"type":"text","text":"%s"}]}],"currentlySelected":0}`,
		Blocks:  `{"versions":[{"role":"assistant","content":[%s]}],"currentlySelected":0}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"toolCallRequest","callId":"i%[1]d","name":"f","parameters":{}}`,
		Weight:  2,
	}},
	{Format: lobechat.Format{}, Fixtures: []string{"lobechat.json"}, Nodes: "*.data.messages.*", Sample: formattest.Sample{
		Before: `{"data":{"topics":[{"id":"t","title":"T"}],"messages":[`, Between: ",", After: `]}}`,
		Element: `{"id":"m%[1]d","parentId":"m%[2]d","role":"user","content":"a","topicId":"t"%[3]s}`,
		Text:    `{"id":"m","role":"user","content":"%s","topicId":"t"}`,
		Blocks:  `{"id":"m","role":"assistant","content":"a","topicId":"t","tools":[%s]}`,
		Block:   `{"apiName":"f"}`,
		Calls:   `{"id":"i%[1]d","apiName":"f"}`,
	}},
	{Format: messages.Format{}, Fixtures: []string{"messages.jsonl", "message-list.json"}, Nodes: "*", Sample: formattest.Sample{
		Before: `[`, Between: ",", After: `]`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":null,"tool_calls":[%s]}`,
		Block:   `{"id":"i%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}`,
	}},
	{Format: oasst.Format{}, Fixtures: []string{"oasst.jsonl"}, Nodes: "*.prompt *.prompt.^replies", Sample: formattest.Sample{
		Before: `{"message_tree_id":"t","prompt":{"message_id":"p","role":"prompter","text":"q","replies":[`, Between: ",", After: "]}}\n",
		Element:   `{"message_id":"m%[1]d","role":"assistant","text":"a","p":%[2]d%[3]s}`,
		Text:      `{"message_id":"m","role":"assistant","text":"%s"}`,
		Blocks:    `{"message_id":"m","role":"assistant","text":"a","labels":[%s]}`,
		Block:     `0`,
		Nested:    `{"message_id":"m%[1]d","role":"assistant","text":"a","replies":[`,
		NestedEnd: `]}`,
	}},
	{Format: openwebui.Format{}, Fixtures: []string{"openwebui.json"}, Nodes: "*.chat.history.messages.%", Sample: formattest.Sample{
		Before: `[{"id":"c","title":"T","chat":{"history":{"currentId":"m1","messages":{`, Between: ",", After: `}}}}]`,
		Element: `"m%[1]d":{"parentId":"m%[2]d","role":"user","content":"a"%[3]s}`,
		Text:    `"m":{"role":"user","content":"%s"}`,
		Blocks:  `"m":{"role":"assistant","output":[%s]}`,
		Block:   `{"type":"message","content":[{"text":"a"}]}`,
		Calls:   `{"type":"function_call","call_id":"i%[1]d","name":"f"}`,
	}},
	{Format: pi.Format{}, Fixtures: []string{"pi.jsonl"}, Nodes: "*", Sample: formattest.Sample{
		Before: `{"type":"session","id":"c","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}` + "\n", Between: "\n", After: "\n",
		Element: `{"type":"message","id":"e%[1]d","parentId":"e%[2]d","message":{"role":"user","content":"a"}%[3]s}`,
		Text:    `{"type":"message","id":"e","message":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","id":"e","message":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"toolCall","id":"i%[1]d","name":"f"}`,
	}},
	{Format: sillytavern.Format{}, Fixtures: []string{"sillytavern.jsonl"}, Nodes: "*", Sample: formattest.Sample{
		Before: `{"user_name":"A","character_name":"B","chat_metadata":{}}` + "\n", Between: "\n", After: "\n",
		Element: `{"name":"A","is_user":true,"is_system":false,"mes":"a%[1]d","n":%[2]d%[3]s}`,
		Text:    `{"name":"A","is_user":true,"is_system":false,"mes":"%s"}`,
		Blocks:  `{"name":"B","is_user":false,"is_system":false,"mes":"a","swipe_id":0,"swipes":[%s]}`,
		Block:   `"a"`,
	}},
	{Format: sweagent.Format{}, Fixtures: []string{"swe-agent.json", "swe-agent-steps.json"}, Nodes: "*.history.* *.trajectory.*", Sample: formattest.Sample{
		Before: `{"environment":"e","history":[`, Between: ",", After: `]}`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
	}},
	{Format: taubench.Format{}, Fixtures: []string{"tau-bench.json"}, Nodes: "*.traj.*", Sample: formattest.Sample{
		Before: `[{"task_id":1,"trial":0,"reward":1,"info":{},"traj":[`, Between: ",", After: `]}]`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"text","text":"a"}`,
	}},
}

func TestFormat(t *testing.T) { formattest.Run(t, suites) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suites) }
