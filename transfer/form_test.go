package transfer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// What goes to another program comes back as the same messages: siblings, calls with
// their results, and names of files that stand in for them.
func TestForms(t *testing.T) {
	t.Parallel()
	const file = `{"type":"conversation","version":1,"id":"01940000-0000-7000-8000-000000000001","title":"When to cut?","created_at":"2026-01-02T09:00:00Z","head_id":"01940000-0000-7000-8000-000000000015"}
{"type":"message","id":"01940000-0000-7000-8000-000000000011","created_at":"2026-01-02T09:00:10Z","body":{"role":"user","content":[{"type":"text","text":"This?"},{"type":"file","file":{"file_id":"coppice:attachment/0100000000000000000000000000000000000000000000000000000000000000","filename":"hazel.txt"}}]}}
{"type":"message","id":"01940000-0000-7000-8000-000000000012","parent_id":"01940000-0000-7000-8000-000000000011","created_at":"2026-01-02T09:00:12Z","body":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"month\": 1}"}}]}}
{"type":"message","id":"01940000-0000-7000-8000-000000000013","parent_id":"01940000-0000-7000-8000-000000000012","created_at":"2026-01-02T09:00:13Z","body":{"role":"tool","tool_call_id":"c1","content":"cold"}}
{"type":"message","id":"01940000-0000-7000-8000-000000000014","parent_id":"01940000-0000-7000-8000-000000000013","created_at":"2026-01-02T09:00:14Z","body":{"role":"assistant","content":"In March."}}
{"type":"message","id":"01940000-0000-7000-8000-000000000015","parent_id":"01940000-0000-7000-8000-000000000013","created_at":"2026-01-02T09:00:15Z","reasoning":"The sap.","body":"{\"role\": \"assistant\",\n\"content\": \"In winter.\"}"}
`
	from := tree.New(dbtest.New(t))
	imported := func(to *tree.Store, file string) transfer.Report {
		t.Helper()
		report, err := transfer.Import(t.Context(), transfer.Into(to), strings.NewReader(file), transfer.Options{})
		check.That(t, err == nil, "%v\n%s", err, file)
		return report
	}
	imported(from, file)
	c := check.Must(from.Conversation(t.Context(), uuid.MustParse("01940000-0000-7000-8000-000000000001")))(t)
	tests := []struct {
		form, name, format string
		branch             string // as it comes back: role and text
		leaves             int
		want               string // a part of the file
	}{
		{"messages", "2026-01-02 When to cut.jsonl", "messages", "user This? [file hazel.txt]|assistant |tool cold|assistant In winter.", 1, `"tool_call_id":"c1","content":"cold"},{"role":"assistant","content":"In winter."}]}`},
		{"sillytavern", "2026-01-02 When to cut.jsonl", "sillytavern", "user This? [file hazel.txt]|assistant |tool cold|assistant In winter.", 2, `"mes":"In winter.","swipes":["In March.","In winter."],"swipe_id":1,"extra":{"reasoning":"The sap."}`},
		{"llama.cpp", "2026-01-02 When to cut.json", "llama.cpp", "user This? [file hazel.txt]|assistant |tool cold|assistant In winter.", 2, `"children":["01940000-0000-7000-8000-000000000014","01940000-0000-7000-8000-000000000015"],"toolCallId":"c1"`},
	}
	for _, tt := range tests {
		form, _ := transfer.FormNamed(tt.form)
		var out strings.Builder
		if err := form.Write(t.Context(), from, c, uuid.Nil, &out); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v\n%s", tt.form, err, out.String())
		}
		if name := form.FileName(c); name != tt.name {
			t.Errorf("%s: the file is named %q, want %q", tt.form, name, tt.name)
		}
		to := from.ForTenant(tt.form)
		report := imported(to, out.String())
		check.That(t, report.Format == tt.format && report.Leaves == tt.leaves && report.LeftOut == 0,
			"%s came back as %+v", tt.form, report)
		var branch []string
		for m, err := range to.Branch(t.Context(), report.First, uuid.Nil, 0) {
			check.NoError(t, err)
			branch = append(branch, string(m.Role)+" "+strings.ReplaceAll(format.Shown(chat.Read(m.Body)), "\n\n", " "))
		}
		check.Equal(t, tt.form+" came back as", strings.Join(branch, "|"), tt.branch)
	}
	long := tree.Conversation{ID: c.ID, Title: "../a\x00b: " + strings.Repeat("ü", 100), CreatedAt: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	form, _ := transfer.FormNamed("markdown")
	if got, want := form.FileName(long), "2026-01-05 a b "+strings.Repeat("ü", 46)+".md"; got != want {
		t.Errorf("the file is named %q, want %q", got, want)
	}
}
