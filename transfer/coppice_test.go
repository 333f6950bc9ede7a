package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// A stored conversation.
type stored struct {
	conversation tree.Conversation
	nodes        []tree.BundleNode
}

// drawBody draws a body that the store takes, of all the ways to write one.
func drawBody(t *rapid.T, role tree.Role, call string, answers string) json.RawMessage {
	text := rapid.SampledFrom([]string{`"plain"`, `"<b>&\u00e9 \ud83c\udf33 \/"`, `"two\nlines ` + "\u2028" + `"`, `[{"type":"text"}]`,
		`[{"type":"text","text":null},{"type":"image_url","image_url":{"url":"data:,"}}]`}).Draw(t, "text")
	var body string
	switch {
	case answers != "":
		body = fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":""}`, answers)
	case call != "":
		calls := rapid.SampledFrom([]string{
			`[{"id":%q,"type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]`,
			`[{"id":%q,"function":{"name":"f"}}]`,
			`[ {"id":%q,"type":"custom","custom":{"name":"g","input":"x"}} ]`,
		}).Draw(t, "calls")
		body = fmt.Sprintf(`{"content":null,"role":"assistant","tool_calls":`+calls+`}`, call)
	default:
		body = fmt.Sprintf(`{"role":%q,"content":%s,"tool_calls":null,"tool_call_id":null,"name":null,"extra":{"b":1.0,"a":[]}}`, role, text)
	}
	space := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t"}).Draw(t, "space")
	body = strings.Replace(body, ",", ","+space, 1)
	return json.RawMessage(space + body + rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "end"))
}

func drawObject(t *rapid.T, name string) json.RawMessage {
	return json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"a":"<&>","n":1e3}`, "{\n  \"lines\": [1, 2]\n}", ` {"b": null}`}).Draw(t, name))
}

func drawTime(t *rapid.T) time.Time {
	return time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "time")).UTC()
}

// drawStored draws a conversation with branches, tool calls and summaries, in
// the order in which a store exports it.
func drawStored(t *rapid.T) stored {
	newID := func() uuid.UUID { return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")) }
	s := stored{conversation: tree.Conversation{
		ID: uuid.New(), Title: rapid.SampledFrom([]string{"", "A title", `<"é">`}).Draw(t, "title"),
		Metadata: drawObject(t, "metadata"), Settings: drawObject(t, "settings"), CreatedAt: drawTime(t),
		Order: tree.Order{
			Archived: rapid.Bool().Draw(t, "archived"), Pinned: rapid.Bool().Draw(t, "pinned"),
			Tags: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"wood", "two words", `"<é>"`, "a,b"}), 0, 4, rapid.ID).Draw(t, "tags"),
		},
	}}
	if rapid.Bool().Draw(t, "forked") {
		s.conversation.Source = tree.Source{ConversationID: uuid.New(), MessageID: uuid.New(), Request: strings.Repeat("0f", 32)}
	}
	seen := map[uuid.UUID]bool{uuid.Nil: true}
	open := map[uuid.UUID]string{} // the call that a message leaves open
	var messages []tree.BundleNode
	for range rapid.IntRange(1, 30).Draw(t, "messages") {
		n := tree.BundleNode{ID: newID(), CreatedAt: drawTime(t), Pinned: rapid.Bool().Draw(t, "pinned"), Annotation: rapid.SampledFrom([]tree.Annotation{{}, {Rating: 1}, {Rating: -1, Label: `<"é">`, Note: "one\ntwo"}}).Draw(t, "annotation")}
		if seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		if at := rapid.IntRange(-1, len(messages)-1).Draw(t, "parent"); at >= 0 {
			n.ParentID = messages[at].ID
		}
		role := rapid.SampledFrom([]tree.Role{tree.RoleSystem, tree.RoleDeveloper, tree.RoleUser, tree.RoleAssistant}).Draw(t, "role")
		call, answers := "", ""
		if rapid.Bool().Draw(t, "tool") {
			if answers = open[n.ParentID]; answers == "" {
				call = "call-" + n.ID.String()
				open[n.ID] = call
			}
		}
		n.Body = drawBody(t, role, call, answers)
		if answers == "" && (call != "" || role == tree.RoleAssistant) {
			n.Reasoning = rapid.SampledFrom([]string{"", "Hm, <é> & \"so\".", "two\nlines \u2028"}).Draw(t, "reasoning")
		}
		if rapid.Bool().Draw(t, "with metadata") {
			n.Metadata = drawObject(t, "metadata")
		}
		if rapid.IntRange(0, 3).Draw(t, "grafted") == 0 {
			n.Graft = &tree.Graft{FromHeadID: newID(), AncestorID: n.ParentID, Messages: 2, Include: tree.IncludeSummary, Instructions: `<"é">`}
		}
		messages = append(messages, n)
	}
	s.conversation.HeadID = rapid.SampledFrom(messages).Draw(t, "head").ID
	s.nodes = append(messages, drawSummaries(t, messages, newID, seen)...)
	return s
}

func drawSummaries(t *rapid.T, messages []tree.BundleNode, newID func() uuid.UUID, seen map[uuid.UUID]bool) (all []tree.BundleNode) {
	up := map[uuid.UUID]uuid.UUID{}
	for _, m := range messages {
		up[m.ID] = m.ParentID
	}
	for range rapid.IntRange(0, 4).Draw(t, "summaries") {
		n := tree.BundleNode{ID: newID(), ParentID: rapid.SampledFrom(messages).Draw(t, "anchor").ID, CreatedAt: drawTime(t), Metadata: drawObject(t, "metadata")}
		if seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		var path []uuid.UUID
		for id := n.ParentID; id != uuid.Nil; id = up[id] {
			path = append(path, id)
		}
		n.Body = drawBody(t, tree.RoleUser, "", "")
		n.Summary = &tree.SummaryRange{
			LastSummarizedID: rapid.SampledFrom(path).Draw(t, "cutoff"), Model: rapid.SampledFrom([]string{"model-a", "offline \"digest\""}).Draw(t, "model"),
			KeptIDs: rapid.SliceOfDistinct(rapid.SampledFrom(path), func(id uuid.UUID) uuid.UUID { return id }).Draw(t, "kept"),
		}
		if len(all) > 0 && rapid.Bool().Draw(t, "prior") {
			n.Summary.PriorSummaryID = all[len(all)-1].ID
		}
		all = append(all, n)
	}
	return all
}

var origins = regexp.MustCompile(`"origin":\{"imported_at":[^{}]*\},`)

func (s stored) summaries() (n int) {
	for _, node := range s.nodes {
		if node.Summary != nil {
			n++
		}
	}
	return n
}

// What was exported comes in elsewhere byte for byte, and a second time adds nothing.
func TestCoppiceThroughStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, to := tree.New(dbtest.New(t)), tree.New(dbtest.New(t))
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStored(rt)
		_, err := from.Import(ctx, tree.Bundle{
			Conversation: tree.NewConversation{
				ID: s.conversation.ID, Title: s.conversation.Title, Metadata: s.conversation.Metadata,
				Settings: s.conversation.Settings, CreatedAt: s.conversation.CreatedAt, Order: s.conversation.Order,
			},
			Source: s.conversation.Source, HeadID: s.conversation.HeadID, Nodes: s.nodes,
		})
		check.NoError(rt, err)
		var out, again bytes.Buffer
		check.NoError(rt, transfer.Export(ctx, from, s.conversation.ID, &out))
		first, err := transfer.Import(ctx, transfer.Into(to), bytes.NewReader(out.Bytes()), transfer.Options{})
		if err != nil || first.Added != len(s.nodes) || len(first.Notes) > 0 {
			rt.Fatalf("added %d of %d, %v, %s", first.Added, len(s.nodes), err, formattest.Notes(first))
		}
		check.NoError(rt, transfer.Export(ctx, to, s.conversation.ID, &again))
		// But for what the stores themselves say of a summary that came in.
		said := func(exported string) string { return origins.ReplaceAllString(exported, "") }
		if said(out.String()) != said(again.String()) || len(origins.FindAllString(again.String(), -1)) != s.summaries() {
			rt.Fatalf("exported\n%s\nand after the import\n%s", &out, &again)
		}
		second, err := transfer.Import(ctx, transfer.Into(to), bytes.NewReader(out.Bytes()), transfer.Options{})
		check.Need(rt, err == nil && second.Added == 0 && second.Present == len(s.nodes),
			"the second time added %d, found %d of %d, %v", second.Added, second.Present, len(s.nodes), err)
	})
}

// An import may leave summaries out: it says how many, and what is there is
// made of the messages. A file that tells of an earlier import is believed that
// far, and no further.
func TestSummariesOfAFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const file = `{"type":"conversation","version":1,"id":"0199c000-0000-7000-8000-000000000001","title":"","created_at":"2026-03-01T10:00:00Z","head_id":null,"metadata":{},"settings":{}}
{"type":"message","id":"0199c000-0000-7000-8000-000000000002","parent_id":null,"created_at":"2026-03-01T10:00:00Z","body":{"role":"user","content":"Hello"}}
{"type":"message","id":"0199c000-0000-7000-8000-000000000003","parent_id":"0199c000-0000-7000-8000-000000000002","created_at":"2026-03-01T10:00:00Z","body":{"role":"assistant","content":"Hello!"}}
{"type":"summary","id":"0199c000-0000-7000-8000-000000000004","parent_id":"0199c000-0000-7000-8000-000000000003","created_at":"2026-03-01T10:00:00Z","last_summarized_id":"0199c000-0000-7000-8000-000000000002","prior_summary_id":null,"kept_ids":[],"model":"m","origin":%s,"body":{"role":"user","content":"They were greeted."}}
`
	store, n := tree.New(dbtest.New(t)), 0
	for origin, first := range map[string]string{
		`null`: "",
		`{"imported_at":"2026-01-02T03:04:05Z","format":"x","first_imported_at":null,"merged":true}`:                    "2026-01-02T03:04:05Z",
		`{"imported_at":"2026-02-02T03:04:05Z","format":"x","first_imported_at":"2025-01-02T03:04:05Z","merged":false}`: "2025-01-02T03:04:05Z",
		`{"imported_at":"yesterday"}`: "", `[]`: "", `"text"`: "",
	} {
		n++
		prefix := fmt.Sprintf("0199c%03d", n)
		conversation, head := uuid.MustParse(prefix+"-0000-7000-8000-000000000001"), uuid.MustParse(prefix+"-0000-7000-8000-000000000003")
		in := strings.ReplaceAll(fmt.Sprintf(file, origin), "0199c000", prefix)
		report, err := transfer.Import(ctx, transfer.Into(store), strings.NewReader(in), transfer.Options{DropSummaries: true})
		if err != nil || report.Messages != 2 || report.Summaries != 0 || report.Dropped != 1 || report.Added != 2 {
			t.Fatalf("%s: without summaries %+v, %v", origin, report, err)
		}
		if v, err := store.View(ctx, conversation, head, 1000); err != nil || v.Summary != nil || len(v.Tail) != 2 {
			t.Fatalf("%s: the view has the summary %+v and %d messages, %v", origin, v.Summary, len(v.Tail), err)
		}
		report, err = transfer.Import(ctx, transfer.Into(store), strings.NewReader(in), transfer.Options{})
		check.Need(t, err == nil && report.Summaries == 1 && report.Dropped == 0 && report.Added == 1,
			"%s: with summaries %+v, %v", origin, report, err)
		if sound := origin == "null" || first != ""; sound != (len(report.Notes) == 0) {
			t.Errorf("%s: notes %s", origin, formattest.Notes(report))
		}
		v, err := store.View(ctx, conversation, head, 1000)
		check.Need(t, err == nil && v.Summary != nil && v.Summary.Range.Origin != nil,
			"%s: the view has the summary %+v, %v", origin, v.Summary, err)
		o, said := v.Summary.Range.Origin, ""
		if o.FirstImportedAt != nil {
			said = o.FirstImportedAt.Format(time.RFC3339)
		}
		check.That(t, o.Format == "coppice" && !o.Merged && time.Since(o.ImportedAt) <= time.Hour && said == first,
			"%s: the origin became %+v, first %q", origin, o, said)
	}
}
