package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// The store takes every fixture as normalizing makes it; a second import adds nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	files := check.Must(filepath.Glob("../testdata/*.*"))(t)
	for _, file := range files {
		if !slices.Contains([]string{".json", ".jsonl", ".traj"}, filepath.Ext(file)) {
			continue
		}
		first := importFile(t, store, file, transfer.Options{})
		if first.Added+first.Present != first.Messages+first.Summaries || first.Added == 0 || strings.Contains(formattest.Notes(first), "refused") {
			t.Errorf("%s, first import: %d added and %d present of %d, %s", file, first.Added, first.Present, first.Messages, formattest.Notes(first))
		}
		again := importFile(t, store, file, transfer.Options{})
		check.That(t, again.Added == 0 && again.Present == first.Added+first.Present,
			"%s, second import: %d added and %d present of %d", file, again.Added, again.Present, first.Messages)
	}
}

func importFile(t *testing.T, store *tree.Store, file string, opts transfer.Options) transfer.Report {
	t.Helper()
	f, err := os.Open(file)
	check.NoError(t, err)
	defer f.Close()
	report, err := transfer.Import(t.Context(), transfer.Into(store), f, opts)
	check.That(t, err == nil, "%s: %v", file, err)
	return report
}

// What changed in a later export under an id that is stored stays out, and the
// report names it. White space is no change.
func TestImportChanged(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	export := func(text, parent string) string {
		return `{"uuid": "c", "name": "Trees", "chat_messages": [
			{"uuid": "m0", "sender": "human", "text": "hi"},
			{"uuid": "m1", "sender": "assistant", "text": "` + text + `", "parent_message_uuid": "m0"},
			{"uuid": "m2", "sender": "human", "text": "thanks", "parent_message_uuid": "` + parent + `"}]}`
	}
	const line = `{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","title":"Own","metadata":{},"settings":{},"head_id":null,"created_at":"2026-01-01T00:00:00Z"}
{"type":"message","id":"01990000-0000-7000-8000-0000000000c2","parent_id":null,"pinned":false,"created_at":"2026-01-01T00:00:00Z","body":`
	for i, test := range []struct{ file, want string }{
		{export("hello", "m1"), ""},
		{export("hello", "m1"), ""},
		{export("hullo", "m1"), "left out changed (Trees) m1: it is stored with other content, which stays"},
		{export("hello", "m0"), "left out changed (Trees) m2: it is stored under another message, where it stays"},
		{line + `{"role":"user","content":"a"}}`, ""},
		{line + `{"role":"user",  "content":"a"}}`, ""},
		{line + `{"role":"user","content":"b"}}`, "left out changed (Own) 01990000-0000-7000-8000-0000000000c2: it is stored with other content, which stays"},
	} {
		report := check.Must(transfer.Import(t.Context(), transfer.Into(store), strings.NewReader(test.file), transfer.Options{}))(t)
		formattest.Same(t, fmt.Sprint("notes of import ", i+1), formattest.Notes(report), test.want)
		check.That(t, test.want == "" || report.Added == 0, "import %d added %d", i+1, report.Added)
	}
}

// One conversation that the store refuses doesn't keep the others out.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	export := func(ids ...string) io.Reader {
		var all []any
		for _, id := range ids {
			all = append(all, map[string]any{"uuid": id, "name": "name of " + id, "chat_messages": []any{map[string]any{"uuid": "m", "sender": "human", "text": id}}})
		}
		return bytes.NewReader(chat.MustMarshal(all))
	}
	// Another tenant has the id that anybody can compute.
	public := transfer.Options{PublicIDs: true}
	check.Must(transfer.Import(t.Context(), transfer.Into(tree.New(pool).ForTenant("other")), export("b"), public))(t)
	report, err := transfer.Import(t.Context(), transfer.Into(tree.New(pool)), export("a", "b", "c"), public)
	check.That(t, err == nil && report.Conversations == 2 && report.Added == 2,
		"%d conversations, %d added, %v", report.Conversations, report.Added, err)
	check.Need(t, len(report.Notes) != 0, "no note")
	// It says that the id can't be had, and not why.
	last, id := report.Notes[len(report.Notes)-1], transfer.PublicID(&format.Conversation{SourceID: "b"}, "claude", "").String()
	if last.Kind != format.KindConversation || last.Conversation != "name of b" || last.Place != id || strings.Contains(last.Detail, "tenant") ||
		!strings.Contains(last.Detail, "the store refused it: ") || !strings.Contains(last.Detail, "can't be had") {
		t.Errorf("%+v", last)
	}
}

// What comes before a broken place comes in, and the error says where it is.
func TestImportBroken(t *testing.T) {
	t.Parallel()
	const good = `{"uuid": "a", "name": "A", "chat_messages": [{"uuid": "m", "sender": "human", "text": "hi"}]}`
	tests := []struct {
		name, in      string
		conversations int
		want          string
	}{
		{"cut off", `[` + good + `, {"uuid": "b", "chat_m`, 1, "transfer.Import: claude: the file is cut off: it ends in the middle of element 2, at byte 117"},
		{"cut off between", `[` + good + `,`, 1, "transfer.Import: claude: the file is cut off: it ends in the middle of element 2, at byte 95"},
		{"not closed", `[` + good, 1, "transfer.Import: claude: the file is cut off: it ends in the middle of element 2, at byte 94"},
		{"no JSON in the middle", `[` + good + `, nonsense, ` + strings.ReplaceAll(good, `"a"`, `"b"`) + `]`, 2, ""},
		{"the structure lost", `[` + good + `, }, ` + good + `]`, 1, "transfer.Import: claude: element 2, near byte 96: the structure of the file is lost: \"}\" stands where a value has to begin"},
		{"one after the other", good + "\n" + strings.ReplaceAll(good, `"a"`, `"b"`), 2, ""},
		{"with a byte order mark", "\uFEFF" + good, 1, ""},
		{"empty", "", 0, "transfer.Import: the file is empty"},
		{"blank", " \n", 0, "transfer.Import: the file is empty"},
		{"no format", `{"a": 1}`, 0, "transfer.Import: no format finds a message in the file, which is an object with a. The formats are chatgpt, claude, "},
		{"no JSON", "Dear diary", 0, "transfer.Import: no format finds a message in the file, which is no JSON object and no list."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := transfer.Import(t.Context(), nil, strings.NewReader(tt.in), transfer.Options{DryRun: true})
			check.That(t, report.Conversations == tt.conversations, "%d conversations", report.Conversations)
			if got := fmt.Sprint(err); err == nil && tt.want != "" || err != nil && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
	_, err := transfer.Import(t.Context(), nil, strings.NewReader(good), transfer.Options{Format: "word", DryRun: true})
	if err == nil || fault.Of(err).Code != transfer.CodeFormat || !strings.Contains(err.Error(), `"word" is no format; there are chatgpt, claude, `) {
		t.Errorf("a format by a wrong name: %v", err)
	}
}

// Small conversations are stored several at a time, a large one alone.
func TestImportBatches(t *testing.T) {
	t.Parallel()
	var calls []int
	store := formattest.StoreFunc(func(_ context.Context, in []tree.Bundle) error {
		calls = append(calls, len(in))
		return nil
	})
	line := func(id string, messages int) string {
		prompt := map[string]any{"message_id": id, "text": "hi", "role": "prompter"}
		for i := range messages - 1 {
			prompt = map[string]any{"message_id": fmt.Sprint(id, i), "text": "hi", "role": "prompter", "replies": []any{prompt}}
		}
		return string(chat.MustMarshal(map[string]any{"message_tree_id": id, "prompt": prompt})) + "\n"
	}
	in := line("a", 100) + line("b", 100) + line("c", 100) + line("d", 300) + line("e", 1) + line("f", 1) + line("e", 2)
	report, err := transfer.Import(t.Context(), store, strings.NewReader(in), transfer.Options{})
	if err != nil || report.Conversations != 6 || report.Messages != 100+100+100+300+2+1 {
		t.Fatal(report.Conversations, err)
	}
	formattest.Same(t, "conversations of each call", fmt.Sprint(calls), "[2 1 1 3]")
	formattest.Same(t, "notes", formattest.Notes(report), "repaired duplicate (hi) : the conversation stands in the file more than once; what is new in this one was added")
}

// What a program's file says of the order of its conversations comes in with them.
func TestOrderOfOtherPrograms(t *testing.T) {
	t.Parallel()
	const openwebui = `[{"id":"a","title":"T","archived":true,"pinned":true,"meta":{"tags":["wood"," two words ","wood",7]},"chat":{"history":{"currentId":"1","messages":{"1":{"id":"1","parentId":null,"role":"user","content":"Hi"}}}}}]`
	const chatgpt = `[{"conversation_id":"a","title":"T","create_time":1.0,%s"current_node":"1","mapping":{"1":{"id":"1","parent":null,"children":[],"message":{"id":"1","author":{"role":"user"},"create_time":1.0,"content":{"content_type":"text","parts":["Hi"]}}}}}]`
	for file, want := range map[string]string{
		openwebui: "{Archived:true Pinned:true Tags:[wood two words]}",
		fmt.Sprintf(chatgpt, `"is_archived":true,`):                     "{Archived:true Pinned:false Tags:[]}",
		fmt.Sprintf(chatgpt, `"is_starred":true,"is_archived":false,`):  "{Archived:false Pinned:true Tags:[]}",
		fmt.Sprintf(chatgpt, `"is_starred":null,"is_archived":"true",`): "{Archived:false Pinned:false Tags:[]}",
	} {
		var b formattest.Bundles
		report, err := transfer.Import(t.Context(), &b, bytes.NewReader([]byte(file)), transfer.Options{})
		if err != nil || len(b) != 1 {
			t.Errorf("%s: %d bundles, %v, %s", file, len(b), err, formattest.Notes(report))
		} else if got := fmt.Sprintf("%+v", b[0].Conversation.Order); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
