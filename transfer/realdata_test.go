package transfer_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// What each real export holds. The numbers are of another program, which
// counts in the files themselves: nodes with text, whose parent is the nearest
// one above that has text; a tool's second answer to one call counts with its
// first, and an answer with a tool call in it as three messages.
var realExports = []struct{ file, want string }{
	// The root and two hidden system messages say nothing, as in every chat: 45 nodes, 42 messages.
	{"chatgpt/chatgpt2graph-example.json", "chatgpt: 1 conversations, 42 messages, 0 branch points, 1 leaves"},
	{"librechat/chatgpt-citations.json", "chatgpt: 1 conversations, 2 messages, 0 branch points, 1 leaves\nrepaired orphan: 1\nrepaired tool: 1\nrepaired head: 1"},
	{"librechat/chatgpt-export.json", "chatgpt: 2 conversations, 18 messages, 0 branch points, 2 leaves\nrepaired tool: 1"},
	{"librechat/chatgpt-modern-export.json", "chatgpt: 2 conversations, 7 messages, 0 branch points, 2 leaves\nrepaired time: 1\nleft out conversation: 1"},
	{"librechat/chatgpt-tree.json", "chatgpt: 1 conversations, 11 messages, 2 branch points, 3 leaves"},

	{"librechat/librechat-export.json", "librechat: 1 conversations, 6 messages, 0 branch points, 1 leaves"},
	{"librechat/librechat-linear.json", "librechat: 1 conversations, 2 messages, 0 branch points, 1 leaves"},
	{"librechat/librechat-opts-nonr-branches.json", "librechat: 1 conversations, 5 messages, 1 branch points, 3 leaves"},
	{"librechat/librechat-tree.json", "librechat: 1 conversations, 9 messages, 2 branch points, 3 leaves\nrepaired time: 7"},

	{"librechat/chatbotui-export.json", "chatbot-ui: 2 conversations, 6 messages, 0 branch points, 2 leaves\nleft out metadata: 2"},

	{"librechat/openwebui-export.json", "openwebui: 3 conversations, 8 messages, 0 branch points, 3 leaves"},
	{"openwebui/importer-expected-chatgpt.json", "openwebui: 1 conversations, 10 messages, 0 branch points, 1 leaves"},
	{"openwebui/importer-expected-claude.json", "openwebui: 1 conversations, 10 messages, 0 branch points, 1 leaves"},
	{"openwebui/webui-json.json", "openwebui: 1 conversations, 2 messages, 0 branch points, 1 leaves"},

	{"claude/osteele/api.json", "claude: 1 conversations, 2 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/business-strategy.json", "claude: 1 conversations, 6 messages, 0 branch points, 1 leaves\nleft out content: 1"},
	{"claude/osteele/cooking.json", "claude: 1 conversations, 6 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/creative-writing.json", "claude: 1 conversations, 6 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/data.json", "claude: 1 conversations, 2 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/debugging.json", "claude: 1 conversations, 4 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/history.json", "claude: 1 conversations, 6 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/math-tutoring.json", "claude: 1 conversations, 4 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/python.json", "claude: 1 conversations, 4 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/webdev.json", "claude: 1 conversations, 2 messages, 0 branch points, 1 leaves"},
	{"claude/osteele/testdata-claude-bakery-chat.json", "claude: 1 conversations, 4 messages, 0 branch points, 1 leaves\nleft out attachment: 1"},
	// An empty content, and a block of blank text; text stands in for both. Text
	// beside a call comes along.
	{"claude/osteele/testdata-conversation-rendering-tests.json", "claude: 1 conversations, 10 messages, 0 branch points, 1 leaves\nrepaired content: 3"},
	// Content is null once, a string once, empty once and without a usable
	// block three times, and a call alone once; the three blocks are left out, two of them without text.
	{"claude/osteele/testdata-conversation-with-errors.json", "claude: 1 conversations, 10 messages, 0 branch points, 1 leaves\nrepaired content: 7\nleft out content: 3"},
	{"claude/osteele/testdata-conversations-multiple-errors.json", "claude: 3 conversations, 4 messages, 0 branch points, 3 leaves\nleft out conversation: 2\nrepaired content: 2"},
	{"claude/osteele/testdata-conversations.json", "claude: 2 conversations, 6 messages, 0 branch points, 2 leaves"},
	{"claude/osteele/testdata-simple-invalid.json", ""},

	{"oasst/en_100_tree.jsonl", "oasst: 100 conversations, 1167 messages, 260 branch points, 626 leaves"},

	// API messages (message.id) and user lines; parents past lines that say nothing.
	// Left out: snapshots of files, queue operations, structured results, titles.
	{"claude-code/dag_cycle.jsonl", "claude-code: 1 conversations, 1 messages, 0 branch points, 1 leaves"},
	{"claude-code/dag_fork.jsonl", "claude-code: 1 conversations, 11 messages, 1 branch points, 2 leaves"},
	{"claude-code/dag_resume.jsonl", "claude-code: 1 conversations, 8 messages, 0 branch points, 1 leaves"},
	{"claude-code/dag_simple.jsonl", "claude-code: 1 conversations, 5 messages, 0 branch points, 1 leaves"},
	{"claude-code/dag_within_fork.jsonl", "claude-code: 1 conversations, 8 messages, 1 branch points, 2 leaves"},
	{"claude-code/long-1.jsonl", "claude-code: 1 conversations, 225 messages, 0 branch points, 1 leaves\nleft out metadata: 4"},
	{"claude-code/long-2.jsonl", "claude-code: 1 conversations, 162 messages, 0 branch points, 1 leaves\nleft out metadata: 2"},
	{"claude-code/medium-1.jsonl", "claude-code: 1 conversations, 115 messages, 0 branch points, 1 leaves\nleft out metadata: 2"},
	{"claude-code/medium-2.jsonl", "claude-code: 1 conversations, 33 messages, 0 branch points, 1 leaves\nleft out metadata: 2"},

	// Entries of type message less the assistant's without text or call; calls with
	// partialJson; other entries.
	{"pi/large-session.jsonl", "pi: 1 conversations, 900 messages, 0 branch points, 1 leaves\nleft out empty: 14\nrepaired tool: 3\nleft out metadata: 3"},

	// 50 tasks of 4 trials; the numbers are those of tries over their messages.
	{"tau-bench/gpt-4o-airline.json", "tau-bench: 50 conversations, 5144 messages, 56 branch points, 200 leaves"},

	// Lengths of the histories, and steps whose response is not in the history.
	{"swe-agent/ctf--crypto--BabyEncryption.traj", "swe-agent: 1 conversations, 31 messages, 0 branch points, 1 leaves\nleft out content: 1\nleft out metadata: 1"},
	{"swe-agent/ctf--crypto--BabyTimeCapsule.traj", "swe-agent: 1 conversations, 19 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--crypto--eps.traj", "swe-agent: 1 conversations, 29 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--crypto--katy.traj", "swe-agent: 1 conversations, 37 messages, 0 branch points, 1 leaves\nleft out content: 1\nleft out metadata: 1"},
	{"swe-agent/ctf--forensics--flash.traj", "swe-agent: 1 conversations, 9 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--misc--networking_1.traj", "swe-agent: 1 conversations, 9 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--pwn--warmup.traj", "swe-agent: 1 conversations, 15 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--rev--rock.traj", "swe-agent: 1 conversations, 25 messages, 0 branch points, 1 leaves\nleft out metadata: 1"},
	{"swe-agent/ctf--web--i_got_id_demo.traj", "swe-agent: 1 conversations, 43 messages, 0 branch points, 1 leaves\nleft out content: 1\nleft out metadata: 1"},
	{"swe-agent/function_calling_simple.traj", "swe-agent: 1 conversations, 12 messages, 0 branch points, 1 leaves"},
}

// Every real export comes in as far as it is sound, into a real store, once.
func TestRealExports(t *testing.T) {
	t.Parallel()
	all := tree.New(dbtest.New(t))
	for _, tt := range realExports {
		// Each a tenant's own, as some files hold the same ids.
		store, opts := all.ForTenant(tt.file), transfer.Options{TenantID: tt.file}
		f := formattest.Shared(t, tt.file)
		report, err := transfer.Import(t.Context(), transfer.Into(store), f, opts)
		if tt.want == "" {
			check.That(t, err != nil && strings.Contains(err.Error(), "The formats are chatgpt, claude, "),
				"%s, which is of no format: %v", tt.file, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		formattest.Same(t, tt.file, formattest.Count(report), tt.want)
		check.That(t, report.Added == report.Messages && report.Present == 0,
			"%s: %d of %d messages added, %d present", tt.file, report.Added, report.Messages, report.Present)
		again, err := transfer.Import(t.Context(), transfer.Into(store), formattest.Shared(t, tt.file), opts)
		check.That(t, err == nil && again.Added == 0 && again.Present == report.Added,
			"%s once more: %d added, %d present, %v", tt.file, again.Added, again.Present, err)
	}
}
