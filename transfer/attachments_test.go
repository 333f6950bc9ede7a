package transfer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// files are a picture and two texts. A PDF would cost seconds, and its bytes travel alike.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	var picture bytes.Buffer
	check.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 900, 600))))
	return map[string][]byte{"hazel.png": picture.Bytes(), "notes.md": []byte("# Hazel\r\n\"&\u2028"), "paper.txt": []byte("Cut it in winter.")}
}

// naming is a user's message that names attachments.
func naming(text string, all ...tree.Attachment) json.RawMessage {
	parts := []chat.Part{chat.TextPart(text)}
	for _, a := range all {
		parts = append(parts, a.Part())
	}
	return (&chat.Message{Role: chat.User, Parts: parts}).Encode()
}

// conversationWith is a conversation whose branches name attachments, one of them
// twice, and lastly one that was never there.
func conversationWith(t *testing.T, s *tree.Store, all map[string][]byte) uuid.UUID {
	t.Helper()
	id, above := uuid.New(), uuid.New()
	nodes := []tree.BundleNode{{ID: above, Body: json.RawMessage(`{"role":"system","content":"Be brief."}`)}}
	var named []tree.Attachment
	for _, name := range []string{"hazel.png", "notes.md", "paper.txt"} {
		if data, ok := all[name]; ok {
			a, _, err := s.Attachments().Add(t.Context(), name, data)
			check.NoError(t, err)
			named = append(named, a)
		}
	}
	for _, a := range named {
		nodes = append(nodes, tree.BundleNode{ID: uuid.New(), ParentID: above, Body: naming("both", a, named[0])})
	}
	nodes = append(nodes, tree.BundleNode{ID: uuid.New(), ParentID: above, Body: naming("lost", tree.Attachment{Hash: [32]byte{1}, Name: "lost.txt", MediaType: "text/plain"})})
	check.Must(s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: id, Title: "Hazel"}, Nodes: nodes}))(t)
	return id
}

func exported(t *testing.T, s *tree.Store, id uuid.UUID) string {
	t.Helper()
	var file bytes.Buffer
	check.NoError(t, transfer.Export(t.Context(), s, id, &file))
	return file.String()
}

// An export brings the bytes of what its messages name, once each, and an import
// stores them before the messages are counted. What is missing is named.
func TestAttachmentsThroughAFile(t *testing.T) {
	t.Parallel()
	from, to := tree.New(dbtest.New(t)), tree.New(dbtest.New(t))
	all := files(t)
	id := conversationWith(t, from, all)
	file := exported(t, from, id)
	check.Equal(t, "the file", strings.Count(file, `"type":"attachment"`), len(all)+1)
	lost := fmt.Sprintf(`{"type":"attachment","hash":"01%s","name":"lost.txt","data":null}`, strings.Repeat("0", 62))
	notes := "# Hazel\r\n\"&\u2028"
	for _, want := range []string{lost, `"name":"notes.md","data":"` + base64.StdEncoding.EncodeToString([]byte(notes)) + `"}`} {
		check.That(t, strings.Contains(file, want), "the file lacks %s:\n%s", want, file)
	}
	for _, test := range []struct {
		store           transfer.Store
		opts            transfer.Options
		added, attached int
	}{
		{nil, transfer.Options{DryRun: true}, 0, 0},
		{transfer.Into(to), transfer.Options{DryRun: true}, 0, 0},
		{transfer.Into(to), transfer.Options{}, len(all) + 2, len(all)},
		{transfer.Into(to), transfer.Options{}, 0, 0},
	} {
		report, err := transfer.Import(t.Context(), test.store, strings.NewReader(file), test.opts)
		if err != nil || report.Attachments != len(all) || report.Attached != test.attached || report.Added != test.added {
			t.Errorf("dry run %t: %+v, %v", test.opts.DryRun, report, err)
		}
		if len(report.Notes) != 1 || report.Notes[0].Kind != "attachment" || !strings.Contains(report.Notes[0].Detail, "lost.txt") || report.Notes[0].Conversation != "Hazel" {
			t.Errorf("dry run %t: notes %+v", test.opts.DryRun, report.Notes)
		}
	}
	check.Equal(t, "it comes out as", exported(t, to, id), file)
	costs := func(s *tree.Store) (sum int64) {
		leaves := check.Must(s.Branches(t.Context(), id, tree.Paging{Limit: 100}))(t)
		for _, m := range leaves.Data {
			sum += m.PathTokens
		}
		return sum
	}
	if got, want := costs(to), costs(from); got != want {
		t.Errorf("the branches cost %d tokens there, and %d here", got, want)
	}
}

// Each unsound line of attachments is left out and named, and the rest comes in.
func TestUnsoundAttachments(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	sum := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	conversation := `{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","created_at":"2026-01-05T08:00:00Z","head_id":null,"settings":{},"metadata":{}}` + "\n" +
		`{"type":"message","id":"01990000-0000-7000-8000-0000000000a1","parent_id":null,"created_at":"2026-01-05T08:00:00Z","body":{"role":"user","content":"hi"}}` + "\n"
	for name, test := range map[string]struct {
		line  string
		found int
		note  string // "" for none
	}{
		"sound":              {`{"type":"attachment","hash":"` + sum + `","name":"a.txt","data":"YQ=="}`, 1, ""},
		"with escapes":       {`{"type":"attachment","hash":"` + sum + `","name":"a.txt","data":"Y\u0051=="}`, 1, ""},
		"without a name":     {`{"type":"attachment","hash":"` + sum + `","data":"YQ=="}`, 1, ""},
		"missing":            {`{"type":"attachment","hash":"` + sum + `","name":"a.txt","data":null}`, 0, ""},
		"twice":              {strings.Repeat(`{"type":"attachment","hash":"`+sum+`","name":"a.txt","data":"YQ=="}`+"\n", 2), 1, ""},
		"without a hash":     {`{"type":"attachment","data":"YQ=="}`, 0, "hash"},
		"of another hash":    {`{"type":"attachment","hash":"` + strings.Repeat("0", 64) + `","name":"a.txt","data":"YQ=="}`, 0, "a.txt"},
		"in upper case":      {`{"type":"attachment","hash":"` + strings.ToUpper(sum) + `","data":"YQ=="}`, 0, "hash"},
		"no base64":          {`{"type":"attachment","hash":"` + sum + `","name":"a.txt","data":"Y"}`, 0, "a.txt"},
		"no string":          {`{"type":"attachment","hash":"` + sum + `","name":"a.txt","data":[97]}`, 0, "no data"},
		"no data":            {`{"type":"attachment","hash":"` + sum + `","name":"a.txt"}`, 0, "no data"},
		"nothing in it":      {`{"type":"attachment","hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","name":"a.txt","data":""}`, 0, "nothing in it"},
		"of no type we know": {`{"type":"attachment","hash":"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d","name":"a.exe","data":"AA=="}`, 0, "PNG"},
	} {
		for _, dryRun := range []bool{true, false} {
			in := conversation + test.line + "\n" + strings.ReplaceAll(conversation, "0000000000", "0000000001")
			report, err := transfer.Import(t.Context(), transfer.Into(store), strings.NewReader(in), transfer.Options{DryRun: dryRun})
			if err != nil || report.Conversations != 2 || report.Attachments != test.found || (len(report.Notes) > 0) != (test.note != "") {
				t.Errorf("%s, dry run %t: %+v, %v", name, dryRun, report, err)
			} else if test.note != "" && (!strings.Contains(report.Notes[0].Detail, test.note) || report.Notes[0].Kind != "attachment") {
				t.Errorf("%s, dry run %t: %+v", name, dryRun, report.Notes)
			}
		}
	}
}

// Attachments together may be larger than a conversation: they are stored as they come.
func TestAttachmentsPassTheBound(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	all := map[string][]byte{}
	for _, name := range []string{"hazel.png", "notes.md", "paper.txt"} {
		all[name] = []byte(name + strings.Repeat(" hazel", 50_000))
	}
	file := exported(t, store, conversationWith(t, store, all))
	const most = 500_000 // each attachment has 400,000 in the file
	opts := transfer.Options{MaxConversationBytes: most}
	report, err := transfer.Import(t.Context(), transfer.Into(store), strings.NewReader(file), opts)
	check.That(t, err == nil && report.Attachments == 3, "%+v, %v", report, err)
	line := regexp.MustCompile(`(?m)^\{"type":"message".*\n`).FindString(file)
	file = strings.ReplaceAll(file, `{"type":"attachment"`, strings.Repeat(line, most/len(line)/2)+`{"type":"attachment"`)
	check.Fails(transfer.Import(t.Context(), transfer.Into(store), strings.NewReader(file), opts))(t, "messages between attachments", fault.TooLarge)
}
