package transfer_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

func TestImportZip(t *testing.T) {
	t.Parallel()
	conversation := func(id string) string {
		return `[{"id": "` + id + `", "title": "` + id + `", "create_time": 1, "current_node": "a", "mapping": {"a": {"id": "a", "parent": null, "message": {"author": {"role": "user"}, "create_time": 1, "content": {"content_type": "text", "parts": ["hi"]}}}}}]`
	}
	tests := []struct {
		name   string
		files  [][2]string
		titles string
		code   string // of the error
	}{
		{"one file", [][2]string{{"user.json", "{}"}, {"conversations.json", conversation("a")}, {"chat.html", "<p>"}}, "a", ""},
		{"in parts and a folder", [][2]string{{"x/conversations-001.json", conversation("b")}, {"x/conversations-000.json", conversation("a")}}, "a b", ""},
		{"no conversations", [][2]string{{"user.json", "{}"}}, "", transfer.CodeFormat},
		{"other files of formats", [][2]string{{"a/list.json", `{"title":"x","messages":[{"role":"user","content":"hi"}]}`}, {"b.json", "{}"}}, "x", ""},
		{"an empty part", [][2]string{{"conversations-000.json", conversation("a")}, {"conversations-001.json", ""}}, "a", transfer.CodeEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			for _, f := range tt.files {
				part := check.Must(w.Create(f[0]))(t)
				check.Must(io.WriteString(part, f[1]))(t)
			}
			check.NoError(t, w.Close())
			file := filepath.Join(t.TempDir(), "export.zip")
			check.NoError(t, os.WriteFile(file, archive.Bytes(), 0o600))
			f := check.Must(os.Open(file))(t)
			defer f.Close()
			for _, in := range []io.Reader{f, bytes.NewReader(archive.Bytes())} { // a file, and a stream
				var b formattest.Bundles
				var last int64
				report, err := transfer.Import(t.Context(), &b, in, transfer.Options{Progress: func(read int64) { last = read }})
				check.That(t, (err != nil) == (tt.code != "") && (err == nil || fault.Of(err).Code == tt.code),
					"error %v", err)
				var titles []string
				for _, one := range b {
					titles = append(titles, one.Conversation.Title)
				}
				formattest.Same(t, "conversations", strings.Join(titles, " "), tt.titles)
				check.That(t, last != 0, "no progress")
				if others := len(tt.files) - 1; tt.name == "one file" && (len(report.Notes) != 1 || report.Notes[0].Detail != fmt.Sprintf("%d files of the archive besides the conversations", others)) {
					t.Errorf("notes %v", report.Notes)
				}
			}
		})
	}
}

// The files of an archive that a user's messages name come in, under the names that
// they had, and the marks of citations become links or go.
func TestImportFilesOfAnArchive(t *testing.T) {
	t.Parallel()
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 20)
	message := func(id, parent, role, content, meta string) string {
		return `"` + id + `":{"parent":"` + parent + `","message":{"author":{"role":"` + role + `"},"content":` + content + `,"metadata":` + meta + `}}`
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"ChatGPT": {map[string]string{"conversations.json": `[{"id":"c","title":"T","mapping":{` +
			message("a", "", "user", `{"content_type":"multimodal_text","parts":["See",{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_0a"},{"content_type":"image_asset_pointer","asset_pointer":"file-service://file-1b"}]}`, `{"attachments":[{"id":"file-1b","name":"hedge.png"},{"id":"file-2c","name":"notes.txt"},{"id":"file-3d","name":"gone.txt"}]}`) + "," +
			message("b", "a", "assistant", `{"content_type":"text","parts":["Hazel\ue200cite\ue202turn0\ue201 and beech\ue200cite\ue202turn1\ue201."]}`, `{"model_slug":"m","content_references":[{"matched_text":"\ue200cite\ue202turn0\ue201","items":[{"title":"Hedges","url":"https://e.org/h"}]}]}`) + `}}]`,
			"x/file_0a.dat": png, "file-1b-hedge.png": png + "y", "file-2c.txt": "n", "file-9.txt": "other", "conversation_asset_file_names.json": `{"file_0a.dat":"birch.png"}`},
			"user: See [image birch.png] [image hedge.png] [file notes.txt]\n*assistant: Hazel ([Hedges](https://e.org/h)) and beech."},
		"Claude": {map[string]string{"conversations.json": `[{"uuid":"c","name":"T","chat_messages":[{"uuid":"m","sender":"human","text":"See","files":[{"file_uuid":"f1","file_name":"birch.png"}],"attachments":[{"id":"f2","file_name":"notes.txt"},{"id":"f4","file_name":"gone.txt"}]},
			{"uuid":"n","sender":"assistant","text":"Mine","files":[{"file_uuid":"f3","file_name":"hedge.png"}]}]}]`, "f1.png": png, "files/f2-notes.txt": "n", "f3": png + "y", "file-9.txt": "other"},
			"user: See [file notes.txt] [attachment: gone.txt] [image birch.png]\n*assistant: Mine [file: hedge.png]"},
		"Open WebUI": {map[string]string{"chats.json": `[{"id":"c","title":"T","chat":{"history":{"currentId":"m","messages":{"m":{"id":"m","role":"user","content":"See","files":[{"type":"image","id":"f1","url":"f1"},{"type":"file","id":"f2","file":{"filename":"notes.txt"}}]}}}}}]`,
			"uploads/f1_birch.png": png, "uploads/f2_notes.txt": "n", "file-9.txt": "other"}, "*user: See [image birch.png] [file notes.txt]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			for name, text := range test.files {
				part := check.Must(w.Create(name))(t)
				check.Must(io.WriteString(part, text))(t)
			}
			check.NoError(t, w.Close())
			var b formattest.Bundles
			report, err := transfer.Import(t.Context(), &b, bytes.NewReader(archive.Bytes()), transfer.Options{})
			if err != nil || len(b) != 1 {
				t.Fatalf("%d conversations, %v, %s", len(b), err, formattest.Notes(report))
			}
			formattest.Same(t, "conversation", formattest.Outline(b[0]), test.want)
			if notes := formattest.Notes(report); report.Attachments < 2 || !strings.Contains(notes, "file-9.txt") {
				t.Errorf("%d attachments, notes %s", report.Attachments, notes)
			}
		})
	}
}
