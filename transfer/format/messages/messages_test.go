package messages_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

func TestMessagesShapes(t *testing.T) {
	t.Parallel()
	const a, b = `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`
	const ab = "user: a\n*assistant: b\n"
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"array of messages":          {"[" + a + ",\n" + b + "]", []string{ab}},
		"a message a line":           {a + "\n" + b + "\n", []string{ab}},
		"one object":                 {`{"messages":[` + a + "," + b + "]}", []string{ab}},
		"one object of many lines":   {"{\n \"messages\": [\n" + a + ",\n" + b + "\n]}\n", []string{ab}},
		"array of objects":           {`[{"messages":[` + a + `]},{"messages":[` + a + "," + b + "]}]", []string{"*user: a\n", ab}},
		"array of arrays":            {"[[" + a + "],[" + a + "," + b + "]]", []string{"*user: a\n", ab}},
		"an array a line":            {"[" + a + "]\n[" + a + "," + b + "]\n", []string{"*user: a\n", ab}},
		"messages after an object":   {`{"messages":[` + a + "]}\n" + a + "\n" + b, []string{"*user: a\n", ab}},
		"a broken line":              {a + "\n{\"role\":\n" + b + "\n", []string{ab}},
		"a byte order mark":          {"\uFEFF" + a + "\n" + b, []string{ab}},
		"null beside what is said":   {`{"role":"assistant","content":"b","tool_calls":null,"function_call":null,"refusal":null}`, []string{"*assistant: b\n"}},
		"an array that is no object": {"[" + a + ",7," + b + "]", []string{ab}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, all := formattest.Read(t, strings.NewReader(test.file), "")
			if report.Format != "messages" || len(all) != len(test.want) {
				t.Fatalf("%d conversations of format %q: %s", len(all), report.Format, formattest.Notes(report))
			}
			for i, want := range test.want {
				formattest.Same(t, "conversation", formattest.Outline(all[i]), want)
			}
		})
	}
}

// A file that breaks off brings what stands before.
func TestMessagesBrokenOff(t *testing.T) {
	t.Parallel()
	var b formattest.Bundles
	report, err := transfer.Import(t.Context(), &b, strings.NewReader(`[{"role":"user","content":"a"},{"role":"assist`), transfer.Options{})
	if err == nil || report.Messages != 1 {
		t.Errorf("%d messages and error %v, want 1 and one that says where", report.Messages, err)
	}
	formattest.Same(t, "error", err.Error(), "transfer.Import: messages: the file is cut off: it ends in the middle of element 2, at byte 46; export or copy it again")
}

// IDs derive from what is said, however the file is laid out.
func TestMessagesIDs(t *testing.T) {
	t.Parallel()
	_, one := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`), "")
	_, two := formattest.Read(t, strings.NewReader("{\"role\": \"user\", \"content\": \"a\"}\n{\"role\": \"assistant\", \"content\": \"b\"}\n"), "")
	_, longer := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`), "")
	if one[0].Conversation.ID != two[0].Conversation.ID || one[0].Nodes[1].ID != two[0].Nodes[1].ID {
		t.Error("white space changed the ids")
	}
	if one[0].Conversation.ID == longer[0].Conversation.ID {
		t.Error("another conversation has the same id")
	}
	const named = `{"id":"0f6e1d9a-31c3-4d0a-8a55-90a3f3f1a901","messages":[{"role":"user","content":"a"}]}`
	_, short := formattest.Read(t, strings.NewReader(named), "")
	_, grown := formattest.Read(t, strings.NewReader(strings.Replace(named, "}]", `},{"role":"assistant","content":"b"}]`, 1)), "")
	if short[0].Conversation.ID != grown[0].Conversation.ID || short[0].Nodes[0].ID != grown[0].Nodes[0].ID {
		t.Error("a conversation with an id of its own changed its id when it grew")
	}
}

// What a model thought doesn't stay in the body, which models read.
func TestMessagesReasoning(t *testing.T) {
	t.Parallel()
	_, all := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a","reasoning":"mine"},
		{"role":"assistant","content":"b","reasoning_content":"Hm.","reasoning":"Hm."},{"role":"assistant","content":"c","reasoning":"So."},
		{"role":"assistant","content":"d","reasoning":{"effort":"low"}}]`), "")
	var got []string
	for _, n := range all[0].Nodes {
		got = append(got, n.Reasoning+" "+string(n.Body))
	}
	formattest.Same(t, "messages", strings.Join(got, "\n"), ` {"role":"user","content":"a","reasoning":"mine"}
Hm. {"content":"b","role":"assistant"}
So. {"content":"c","role":"assistant"}
 {"role":"assistant","content":"d","reasoning":{"effort":"low"}}`)
}
