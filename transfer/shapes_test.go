package transfer

import (
	"fmt"
	"io"
	"strings"
)

// A sample writes files of one format, of one conversation each, by which what
// must hold for every format is tested. A new format adds its line to samples.
type sample struct {
	format        string
	before, after string
	between       string
	element       string // a message with the id %[1]d below %[2]d, and %[3]s beside the rest
	text          string // a message whose text is %s
	blocks        string // a message of several blocks, %s
	block         string // one of them, with the id %[1]d
	calls         string // one that calls a tool; "" where messages have none
	nested        string // opens a message around others, closed by nestedEnd; "" where none can be
	nestedEnd     string
}

var samples = []sample{
	{
		format: "chatgpt", before: `[{"title":"T","create_time":1,"id":"c","current_node":"n1","mapping":{`, between: ",", after: `}}]`,
		element: `"n%[1]d":{"parent":"n%[2]d","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["a"]}}%[3]s}`,
		text:    `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["%s"]}}}`,
		blocks:  `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[%s]}}}`, block: `"a"`,
	},
	{
		format: "claude", before: `[{"uuid":"c","name":"T","chat_messages":[`, between: ",", after: `]}]`,
		element: `{"uuid":"m%[1]d","sender":"human","text":"a","p":%[2]d%[3]s}`,
		text:    `{"uuid":"m","sender":"human","text":"%s"}`,
		blocks:  `{"uuid":"m","sender":"assistant","content":[%s]}`, block: `{"type":"text","text":"a"}`,
		calls: `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
	},
	{
		format: "librechat", before: `{"conversationId":"c","title":"T","messages":[`, between: ",", after: `]}`,
		element: `{"messageId":"m%[1]d","parentMessageId":"m%[2]d","isCreatedByUser":true,"text":"a"%[3]s}`,
		text:    `{"messageId":"m","isCreatedByUser":true,"text":"%s"}`,
		blocks:  `{"messageId":"m","content":[%s]}`, block: `{"type":"text","text":"a"}`,
		calls:  `{"type":"tool_call","tool_call":{"name":"f","id":"i%[1]d","output":"o"}}`,
		nested: `{"messageId":"m%[1]d","text":"a","children":[`, nestedEnd: `]}`,
	},
	{
		format: "openwebui", before: `[{"id":"c","title":"T","chat":{"history":{"currentId":"m1","messages":{`, between: ",", after: `}}}}]`,
		element: `"m%[1]d":{"parentId":"m%[2]d","role":"user","content":"a"%[3]s}`,
		text:    `"m":{"role":"user","content":"%s"}`,
		blocks:  `"m":{"role":"assistant","output":[%s]}`, block: `{"type":"message","content":[{"text":"a"}]}`,
		calls: `{"type":"function_call","call_id":"i%[1]d","name":"f"}`,
	},
	{
		format: "swe-agent", before: `{"environment":"e","history":[`, between: ",", after: `]}`,
		element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		text:    `{"role":"user","content":"%s"}`,
		blocks:  `{"role":"assistant","content":[%s]}`, block: `{"type":"text","text":"a"}`,
	},
	{
		format: "chatbot-ui", before: `{"history":[{"id":1,"name":"T","messages":[`, between: ",", after: `]}],"folders":[]}`,
		element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		text:    `{"role":"user","content":"%s"}`,
		blocks:  `{"role":"assistant","content":[%s]}`, block: `{"type":"text","text":"a"}`,
	},
	{
		format: "oasst", before: `{"message_tree_id":"t","prompt":{"message_id":"p","role":"prompter","text":"q","replies":[`, between: ",", after: "]}}\n",
		element: `{"message_id":"m%[1]d","role":"assistant","text":"a","p":%[2]d%[3]s}`,
		text:    `{"message_id":"m","role":"assistant","text":"%s"}`,
		blocks:  `{"message_id":"m","role":"assistant","text":"a","labels":[%s]}`, block: `0`,
		nested: `{"message_id":"m%[1]d","role":"assistant","text":"a","replies":[`, nestedEnd: `]}`,
	},
	{
		format: "coppice", before: `{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","title":"T","head_id":null,"metadata":{},"settings":{}}` + "\n", between: "\n", after: "\n",
		element: `{"type":"message","id":"01990000-0000-7000-8000-%012[1]d","parent_id":null,"body":{"role":"user","content":"a"},"p":%[2]d%[3]s}`,
		text:    `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"user","content":"%s"}}`,
		blocks:  `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"assistant","content":[%s]}}`, block: `{"type":"text","text":"a"}`,
	},
	{
		format: "codex", before: `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c"}}` + "\n", between: "\n", after: "\n",
		element: `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"a"}]},"p":[%[1]d,%[2]d]%[3]s}`,
		text:    `{"type":"response_item","payload":{"type":"message","role":"user","content":"%s"}}`,
		blocks:  `{"type":"response_item","payload":{"type":"message","role":"user","content":[%s]}}`, block: `{"text":"a"}`,
	},
	{
		format: "claude-code", before: `{"type":"user","uuid":"u0","sessionId":"c","message":{"role":"user","content":"q"}}` + "\n", between: "\n", after: "\n",
		element: `{"type":"user","uuid":"u%[1]d","parentUuid":"u%[2]d","sessionId":"c","message":{"role":"user","content":"a"}%[3]s}`,
		text:    `{"type":"user","uuid":"u","sessionId":"c","message":{"role":"user","content":"%s"}}`,
		blocks:  `{"type":"assistant","uuid":"u","sessionId":"c","message":{"role":"assistant","content":[%s]}}`, block: `{"type":"text","text":"a"}`,
		calls: `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
	},
	{
		format: "pi", before: `{"type":"session","id":"c","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}` + "\n", between: "\n", after: "\n",
		element: `{"type":"message","id":"e%[1]d","parentId":"e%[2]d","message":{"role":"user","content":"a"}%[3]s}`,
		text:    `{"type":"message","id":"e","message":{"role":"user","content":"%s"}}`,
		blocks:  `{"type":"message","id":"e","message":{"role":"assistant","content":[%s]}}`, block: `{"type":"text","text":"a"}`,
		calls: `{"type":"toolCall","id":"i%[1]d","name":"f"}`,
	},
	{
		format: "tau-bench", before: `[{"task_id":1,"trial":0,"reward":1,"info":{},"traj":[`, between: ",", after: `]}]`,
		element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		text:    `{"role":"user","content":"%s"}`,
		blocks:  `{"role":"assistant","content":[%s]}`, block: `{"type":"text","text":"a"}`,
		calls: `{"type":"text","text":"a"}`,
	},
	{
		format: "messages", before: `[`, between: ",", after: `]`,
		element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		text:    `{"role":"user","content":"%s"}`,
		blocks:  `{"role":"assistant","content":null,"tool_calls":[%s]}`, block: `{"id":"i%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}`,
	},
}

// empty is an element that says nothing.
func (s sample) empty() string {
	if strings.HasPrefix(s.element, `"`) {
		return `"n":{}`
	}
	return "{}"
}

// file is a file of so many bytes, about, of what each makes: the first is 1.
func (s sample) file(size int, each func(i int) string) io.Reader {
	i, done := 0, 0
	return &generated{next: func() string {
		switch {
		case i < 0:
			return ""
		case i > 0 && done >= size:
			i = -1
			return s.after
		}
		if i++; i == 1 {
			return s.before + each(1)
		}
		return s.between + each(i)
	}, done: &done}
}

// shapes are the conversations by which memory is measured: each costs the
// most memory for its bytes in some way.
func (s sample) shapes(size int) map[string]io.Reader {
	list := func(message, one string) io.Reader {
		before, after, _ := strings.Cut(message, "%s")
		in := sample{before: s.before + before, between: ",", after: after + s.after}
		return in.file(size, func(i int) string { return numbered(one, i) })
	}
	pad := func(to int) string {
		return fmt.Sprintf(`,"pad":"%s"`, strings.Repeat("x", max(to-len(fmt.Sprintf(s.element, 100_000, 99_999, `,"pad":""`)), 0)))
	}
	weight := 1
	if s.format == "chatgpt" || s.format == "claude-code" {
		weight = 2
	}
	long, escaped := pad(weight*bytesPerMessage), strings.Repeat(`a\n\"`, 1000)
	plain := strings.Repeat("a b ", 1000)
	all := map[string]io.Reader{
		"many elements that say nothing": s.file(size, func(int) string { return s.empty() }),
		"many tiny messages":             s.file(size, func(i int) string { return fmt.Sprintf(s.element, i, i-1, "") }),
		"as many messages as may be":     s.file(size, func(i int) string { return fmt.Sprintf(s.element, i, i-1, long) }),
		"one huge text":                  s.long(size, plain),
		"one huge text with escapes":     s.long(size, escaped),
		"deep nesting": s.file(size, func(i int) string {
			return fmt.Sprintf(s.element, i, i-1, `,"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
		}),
		"too deep nesting": s.file(size, func(i int) string {
			return fmt.Sprintf(s.element, i, i-1, `,"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000))
		}),
		"many blocks in one message":  list(s.blocks, s.block),
		"many members in one message": s.file(size, func(int) string { return fmt.Sprintf(s.element, 1, 0, ","+members(size)) }),
		"many times the same name":    s.file(size, func(i int) string { return fmt.Sprintf(s.element, 1, 0, "") }),
	}
	if s.calls != "" {
		all["many calls in one message"] = list(s.blocks, s.calls)
	}
	if s.nested != "" {
		const depth = 4000
		all["messages in each other"] = s.file(size, func(i int) string {
			var b strings.Builder
			for d := range depth {
				b.WriteString(numbered(s.nested, i*depth+d))
			}
			return b.String() + strings.Repeat(s.nestedEnd, depth)
		})
	}
	return all
}

// long is a file of one message whose text is so long.
func (s sample) long(size int, piece string) io.Reader {
	before, after, _ := strings.Cut(s.text, "%s")
	in := sample{before: s.before + before, after: after + s.after}
	return in.file(size, func(int) string { return piece })
}

func numbered(format string, i int) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, i)
}

func members(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	return b.String() + `"z":0`
}

// generated reads what next makes, until that is "".
type generated struct {
	next func() string
	rest string
	done *int
}

func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		if g.rest = g.next(); g.rest == "" {
			return 0, io.EOF
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	*g.done += n
	return n, nil
}
