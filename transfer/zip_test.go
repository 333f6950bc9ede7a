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
		{"an empty part", [][2]string{{"conversations-000.json", conversation("a")}, {"conversations-001.json", ""}}, "a", transfer.CodeEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			for _, f := range tt.files {
				part, err := w.Create(f[0])
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(part, f[1]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "export.zip")
			if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, in := range []io.Reader{f, bytes.NewReader(archive.Bytes())} { // a file, and a stream
				var b formattest.Bundles
				var last int64
				report, err := transfer.Import(t.Context(), &b, in, transfer.Options{Progress: func(read int64) { last = read }})
				if (err != nil) != (tt.code != "") || err != nil && fault.Of(err).Code != tt.code {
					t.Errorf("error %v", err)
				}
				var titles []string
				for _, one := range b {
					titles = append(titles, one.Conversation.Title)
				}
				formattest.Same(t, "conversations", strings.Join(titles, " "), tt.titles)
				if last == 0 {
					t.Error("no progress")
				}
				if others := len(tt.files) - 1; tt.name == "one file" && (len(report.Notes) != 1 || report.Notes[0].Detail != fmt.Sprintf("%d files of the archive besides the conversations", others)) {
					t.Errorf("notes %v", report.Notes)
				}
			}
		})
	}
}
