package summarize

import (
	"bytes"
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
		return check.Must3(store.AddAttachment(t.Context(), name, data))(t)
	}
	oldest, text, paper := file("oldest.txt", []byte("oak")), file("text.txt", bytes.Repeat([]byte("ash "), 100)), file("paper.txt", []byte("hazel"))
	there := check.Must(store.Attachments(t.Context(), oldest.Hash, text.Hash, paper.Hash))(t)
	for room, want := range map[int]string{
		1000:        "paper text oldest",
		5 + 400 + 3: "paper text oldest",
		5 + 400 + 2: "paper text",
		5 + 399:     "paper", // and nothing that is older
		4:           "",
	} {
		r := resolver{store: store, room: room, there: there}
		var shown []string
		for _, a := range []tree.Attachment{{Hash: [32]byte{1}, Name: "missing.txt"}, paper, text, oldest} { // the newest first
			body := string(check.Must(r.message(t.Context(), chat.Read(fmt.Appendf(nil, `{"role":"user","content":[%s]}`, a.Part().Raw))))(t))
			if strings.Contains(body, "missing]") != (a.Name == "missing.txt") {
				t.Errorf("%s is shown as %s", a.Name, body)
			} else if a.Name != "missing.txt" && !strings.Contains(body, "left out, as newer attachments take all room]") {
				shown = append(shown, strings.TrimSuffix(a.Name, ".txt"))
			}
		}
		if got := strings.Join(shown, " "); got != want {
			t.Errorf("in %d bytes are %q, want %q", room, got, want)
		}
	}
}
