package transfer_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// What each real export holds. The numbers are of another program, which
// counts in the files themselves: nodes with text, whose parent is the nearest
// one above that has text; a tool's second answer to one call counts with its
// first, and an answer with a tool call in it as three messages.
var realExports = []struct{ file, want string }{
	// The root and two hidden system messages say nothing: 45 nodes, 42 messages.
	{"chatgpt/chatgpt2graph-example.json", "chatgpt: 1 conversations, 42 messages, 0 branch points, 1 leaves\nleft out empty: 3"},
	{"librechat/chatgpt-citations.json", "chatgpt: 1 conversations, 2 messages, 0 branch points, 1 leaves\nrepaired orphan: 1\nrepaired tool: 1\nrepaired head: 1"},
	{"librechat/chatgpt-export.json", "chatgpt: 2 conversations, 18 messages, 0 branch points, 2 leaves\nleft out empty: 4\nrepaired tool: 1"},
	{"librechat/chatgpt-modern-export.json", "chatgpt: 2 conversations, 7 messages, 0 branch points, 2 leaves\nleft out empty: 2\nrepaired time: 1\nleft out conversation: 1"},
	{"librechat/chatgpt-tree.json", "chatgpt: 1 conversations, 11 messages, 2 branch points, 3 leaves\nleft out empty: 2"},

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
	{"claude/osteele/testdata-conversations-multiple-errors.json", "claude: 4 conversations, 4 messages, 0 branch points, 3 leaves\nleft out conversation: 1\nrepaired content: 2"},
	{"claude/osteele/testdata-conversations.json", "claude: 2 conversations, 6 messages, 0 branch points, 2 leaves"},
	{"claude/osteele/testdata-simple-invalid.json", ""},

	{"oasst/en_100_tree.jsonl", "oasst: 100 conversations, 1167 messages, 260 branch points, 626 leaves"},
}

// Every real export comes in as far as it is sound, into a real store, once.
func TestRealExports(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	for _, tt := range realExports {
		f := formattest.Shared(t, tt.file)
		report, err := transfer.Import(t.Context(), store, f, transfer.Options{})
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "these are: chatgpt, claude, ") {
				t.Errorf("%s, which is of no format: %v", tt.file, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		formattest.Same(t, tt.file, formattest.Count(report), tt.want)
		if report.Added != report.Messages || report.Present != 0 {
			t.Errorf("%s: %d of %d messages added, %d present", tt.file, report.Added, report.Messages, report.Present)
		}
		again, err := transfer.Import(t.Context(), store, formattest.Shared(t, tt.file), transfer.Options{})
		if err != nil || again.Added != 0 || again.Present != report.Added {
			t.Errorf("%s once more: %d added, %d present, %v", tt.file, again.Added, again.Present, err)
		}
	}
}

// No real export is without its numbers.
func TestRealExportsAreAllCounted(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(filepath.Dir(formattest.Shared(t, realExports[0].file).Name()))
	for _, folder := range []string{"chatgpt", "librechat", "openwebui", "claude/osteele", "oasst"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.json*"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", folder, len(files), err)
		}
		for _, f := range files {
			name := folder + "/" + filepath.Base(f)
			if !slices.ContainsFunc(realExports, func(e struct{ file, want string }) bool { return e.file == name }) {
				t.Errorf("%s is not in the table", name)
			}
		}
	}
}

// BenchmarkImportOASST imports 100 trees with 1,167 messages into an empty
// database. The promise is 5,000 messages a second.
func BenchmarkImportOASST(b *testing.B) {
	store := tree.New(dbtest.New(b))
	messages := 0
	for i := 0; b.Loop(); i++ {
		// Each round another tenant's, so that nothing is there before.
		tenant := "tenant" + strings.Repeat("x", i)
		report, err := transfer.Import(b.Context(), store.ForTenant(tenant), formattest.Shared(b, "oasst/en_100_tree.jsonl"), transfer.Options{TenantID: tenant, Workers: 4})
		if err != nil || report.Added != 1167 {
			b.Fatal(report.Added, err)
		}
		messages += report.Added
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msgs/s")
}
