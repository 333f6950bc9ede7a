package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

// A format is one kind of file that Import reads.
type format struct {
	name string // as Options.Format and Report.Format say it

	// detect tells from the outline of a file's start whether the file is of
	// this format. Formats are asked in the order of the table; the first yes
	// stands.
	detect func(s shape) bool

	// marks are paths that files of this format have, though others may have
	// them too: by these the nearest format is found for a file of none.
	marks []string

	// parse reads the whole file and emits each conversation as soon as it is
	// read, in the order of the file. It never panics, whatever it reads.
	// What it repairs or leaves out within a conversation stands in that
	// conversation's Notes; what concerns the file as a whole, or a
	// conversation that is not emitted, goes to note. An error of emit is
	// returned as it is. Any other error says where in the file it arose;
	// what was emitted before it is kept.
	parse func(in *input, emit func(Conversation) error, note func(Note)) error
}

// formats is every format, the more telling ones first. A new one adds its
// line here.
var formats = []format{
	{"chatgpt", detectChatGPT, []string{"mapping", "current_node", "conversation_id", "create_time", "update_time"}, parseChatGPT},
	{"claude", detectClaude, []string{"uuid", "name", "chat_messages", "created_at", "updated_at", "account"}, parseClaude},
	{"librechat", detectLibreChat, []string{"conversationId", "messages", "endpoint", "title", "messages[].messageId"}, parseLibreChat},
	{"openwebui", detectOpenWebUI, []string{"chat", "history", "models", "messages[].parentId", "chat.title"}, parseOpenWebUI},
	{"swe-agent", detectSWEAgent, []string{"trajectory", "history", "info", "environment"}, parseSWEAgent},
	{"chatbot-ui", detectChatbotUI, []string{"history", "folders", "prompts"}, parseChatbotUI},
	{"oasst", detectOASST, []string{"prompt", "message_tree_id", "tree_state", "message_id", "replies"}, parseOASST},
	{"coppice", detectCoppice, []string{"version", "type", "head_id", "settings", "body"}, parseCoppice},
	{"codex", detectCodex, []string{"payload", "payload.type", "timestamp", "type", "call_id", "arguments"}, parseCodex},
	{"claude-code", detectClaudeCode, []string{"parentUuid", "sessionId", "isSidechain", "uuid", "message.role", "message.content"}, parseClaudeCode},
	{"pi", detectPi, []string{"cwd", "parentId", "provider", "modelId", "thinkingLevel"}, parsePi},
	{"tau-bench", detectTauBench, []string{"task_id", "trial", "traj", "reward"}, parseTauBench},
	{"messages", detectMessages, []string{"role", "content", "messages", "tool_calls", "messages[].content"}, parseMessages}, // last: other formats have roles and content too
}

// Formats lists the names of the formats that Import reads.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// A file is recognized by its first bytes: by as few as tell, and at most by so
// many.
const (
	headBytes    = 64 << 10
	maxHeadBytes = 4 << 20
)

// recognize reads as much of r as it needs to tell the format, or to find that
// it can't. A name of a format tells by itself. member names the list in the
// file's one object in which the conversations stand; "" for the file itself.
func recognize(r io.Reader, name string) (head []byte, f format, member string, err error) {
	for size := headBytes; ; size *= 4 {
		was := len(head)
		head = append(make([]byte, 0, size), head...)[:size]
		n, readErr := io.ReadFull(r, head[was:])
		head = head[:was+n]
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return nil, f, "", readErr
		}
		if readErr != nil && len(bytes.TrimSpace(head)) == 0 {
			return nil, f, "", fault.New(fault.Invalid, CodeEmpty, "", "the file is empty")
		}
		f, member, err = choose(name, head)
		if err == nil || readErr != nil || name != "" || size >= maxHeadBytes {
			return head, f, member, err
		}
	}
}

// wrappers are names of lists of conversations in the one object of a file.
var wrappers = []string{"conversations", "chats", "data"}

// choose gives the format of the name, or the one that head is of.
func choose(name string, head []byte) (_ format, member string, _ error) {
	s := shapeOf(head)
	among := formats
	if name != "" {
		i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
		if i < 0 {
			return format{}, "", fault.New(fault.Invalid, CodeFormat, "", "%q is no format; there are %s", name, strings.Join(Formats(), ", "))
		}
		among = formats[i : i+1]
	}
	for _, member := range append([]string{""}, wrappers...) {
		inside := s.in(member)
		if i := slices.IndexFunc(among, func(f format) bool { return f.detect(inside) }); i >= 0 {
			return among[i], member, nil
		}
	}
	if name != "" {
		return among[0], "", nil
	}
	return format{}, "", fault.New(fault.Invalid, CodeFormat, "", "the content is of no format that is read here; these are: %s. %s", strings.Join(Formats(), ", "), s.nearest())
}

// nearest says which format the file resembles most.
func (s shape) nearest() string {
	best, found := "", []string(nil)
	for _, f := range formats {
		var has []string
		for _, path := range f.marks {
			if s.has(path) {
				has = append(has, path)
			}
		}
		if len(has) > len(found) {
			best, found = f.name, has
		}
	}
	if best == "" {
		return "If it is one of them, name it by --format, or over REST by the parameter format"
	}
	return fmt.Sprintf("The nearest is %s, as it has %s. To have it read as that, say --format %[1]s, or over REST format=%[1]s", best, strings.Join(found, ", "))
}
