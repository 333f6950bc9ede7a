package transfer

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A format is one kind of file that Import reads.
type format struct {
	name string // as Options.Format and Report.Format say it

	// detect tells from the outline of a file's start whether the file is of
	// this format. Formats are asked in the order of the table; the first yes
	// stands.
	detect func(s shape) bool

	// parse reads the whole file and emits each conversation as soon as it is
	// read, in the order of the file. It never panics, whatever it reads.
	// What it repairs or leaves out within a conversation stands in that
	// conversation's Notes; what concerns the file as a whole, or a
	// conversation that is not emitted, goes to note. An error of emit is
	// returned as it is. Any other error says where in the file it arose;
	// what was emitted before it is kept.
	parse func(r io.Reader, emit func(Conversation) error, note func(Note)) error
}

// formats is every format, the more telling ones first. A new one adds its
// line here.
var formats = []format{
	{"chatgpt", detectChatGPT, parseChatGPT},
	{"claude", detectClaude, parseClaude},
	{"librechat", detectLibreChat, parseLibreChat},
	{"openwebui", detectOpenWebUI, parseOpenWebUI},
	{"swe-agent", detectSWEAgent, parseSWEAgent},
	{"chatbot-ui", detectChatbotUI, parseChatbotUI},
	{"oasst", detectOASST, parseOASST},
	{"coppice", detectCoppice, parseCoppice},
	{"claude-code", detectClaudeCode, parseClaudeCode},
	{"pi", detectPi, parsePi},
	{"tau-bench", detectTauBench, parseTauBench},
	{"messages", detectMessages, parseMessages}, // last: other formats have roles and content too
}

// Formats lists the names of the formats that Import reads.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// choose gives the format of the name, or the one that head is of.
func choose(name string, head []byte) (format, error) {
	if name != "" {
		if i := slices.IndexFunc(formats, func(f format) bool { return f.name == name }); i >= 0 {
			return formats[i], nil
		}
		return format{}, fmt.Errorf("%q is no format; there are %s: %w", name, strings.Join(Formats(), ", "), ErrFormat)
	}
	s := shapeOf(head)
	if i := slices.IndexFunc(formats, func(f format) bool { return f.detect(s) }); i >= 0 {
		return formats[i], nil
	}
	return format{}, fmt.Errorf("the content is of no format that is read here; these are: %s: %w", strings.Join(Formats(), ", "), ErrFormat)
}
