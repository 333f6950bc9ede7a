package summarize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// Of attachments that are too much for one context the older ones are left out.
func TestAttachmentsTakeRoom(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	file := func(name string, data []byte) tree.Attachment {
		a, _, err := store.AddAttachment(t.Context(), name, data)
		check.NoError(t, err)
		return a
	}
	oldest, text := file("oldest.txt", []byte("oak")), file("text.txt", bytes.Repeat([]byte("ash "), 100))
	paper := file("paper.txt", []byte("hazel"))
	missing := tree.Attachment{Hash: [32]byte{1}, Name: "missing.txt"}
	for _, test := range []struct {
		room int
		want string
	}{
		{1000, "oldest text paper"},
		{5 + 400 + 3, "oldest text paper"},
		{5 + 400 + 2, "text paper"},
		{5 + 399, "paper"}, // and nothing that is older
		{4, ""},
	} {
		there := check.Must(store.Attachments(t.Context(), oldest.Hash, text.Hash, paper.Hash))(t)
		r := resolver{store: store, room: test.room, there: there}
		shown := map[string]bool{}
		for _, a := range []tree.Attachment{missing, paper, text, oldest} { // the newest first
			body := check.Must(r.message(t.Context(), chat.Read(json.RawMessage(fmt.Sprintf(`{"role":"user","content":[%s]}`, a.Part().Raw)))))(t)
			switch name := strings.TrimSuffix(a.Name, ".txt"); {
			case strings.Contains(string(body), "missing]"):
				shown[name] = name != "missing"
			default:
				shown[name] = !strings.Contains(string(body), "left out, as newer attachments take all room]")
			}
		}
		var got []string
		for _, name := range []string{"missing", "oldest", "text", "paper"} {
			if shown[name] {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("in %d bytes are %q, want %q", test.room, got, test.want)
		}
	}
}
