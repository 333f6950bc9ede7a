package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// claudeExport is an export of conversations with these ids, one of them
// perhaps twice, of 100 messages each. The last message of each is empty.
func claudeExport(ids ...string) string {
	var all []any
	for _, id := range ids {
		messages := make([]any, 0, 101)
		for i := range 100 {
			messages = append(messages, map[string]any{"uuid": fmt.Sprint("m", i), "sender": "human", "text": id})
		}
		messages = append(messages, map[string]any{"uuid": "empty in " + id, "sender": "human", "text": ""})
		all = append(all, map[string]any{"uuid": id, "name": id, "chat_messages": messages})
	}
	return string(chat.MustMarshal(all))
}

// With several workers everything is there once, and the report is that of one.
func TestImportWorkers(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	ids := strings.Fields("a b c d e a f g h i a")
	report, err := transfer.Import(t.Context(), transfer.Into(store), strings.NewReader(claudeExport(ids...)), transfer.Options{Workers: 4})
	if err != nil || report.Conversations != 9 || report.Messages != 900 || report.Added != 900 || report.Present != 0 {
		t.Errorf("%v, %s, %d added, %d present", err, formattest.Count(report), report.Added, report.Present)
	}
	var places []string
	for _, n := range report.Notes {
		places = append(places, strings.TrimPrefix(n.Place, "empty in "))
	}
	formattest.Same(t, "notes", strings.Join(places, " "), "a b c d e  f g h i")
	formattest.Same(t, "what came up three times", fmt.Sprintln(report.Notes[0].Detail)+report.Notes[5].Detail,
		"it says nothing (3 times)\nthe conversation stands in the file more than once; what is new in this one was added (2 times)")
}

// The error of a store ends the import, and the report tells of what it took before.
func TestImportStoreFails(t *testing.T) {
	t.Parallel()
	failure := errors.New("the disk is full")
	for _, workers := range []int{0, 3} {
		store := formattest.StoreFunc(func(ctx context.Context, in []tree.Bundle) error {
			for _, b := range in {
				if b.Conversation.Title == "f" {
					return failure
				}
			}
			return ctx.Err()
		})
		ids := strings.Fields("a b c d e f g h i j k l m n o p q r s t")
		report, err := transfer.Import(t.Context(), store, strings.NewReader(claudeExport(ids...)), transfer.Options{Workers: workers})
		check.That(t, errors.Is(err, failure), "error %v", err)
		if report.Messages != report.Added || report.Conversations >= len(ids) || workers == 0 && report.Conversations < 4 {
			t.Errorf("%s, %d added", formattest.Count(report), report.Added)
		}
	}
}
