package transfer_test

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/chatbotui"
	"github.com/coppice-chat/coppice/transfer/format/chatgpt"
	"github.com/coppice-chat/coppice/transfer/format/claude"
	"github.com/coppice-chat/coppice/transfer/format/librechat"
	"github.com/coppice-chat/coppice/transfer/format/oasst"
	"github.com/coppice-chat/coppice/transfer/format/openwebui"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// The fixtures of each format with something in them exchanged, doubled, taken
// out or put elsewhere: everything is read or noted, and the store takes what
// comes out.
func TestParseProperties(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	for _, test := range []struct {
		format format.Format
		file   string
	}{
		{chatgpt.Format{}, "chatgpt.json"}, {claude.Format{}, "claude.json"}, {librechat.Format{}, "librechat.json"},
		{openwebui.Format{}, "openwebui.json"}, {chatbotui.Format{}, "chatbot-ui.json"}, {oasst.Format{}, "oasst.jsonl"},
	} {
		t.Run(test.format.Name(), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(formattest.Fixture(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				raw := formattest.Changed(rt, data)
				p := formattest.Parse(t, test.format, raw)
				if t.Failed() {
					rt.Fatalf("%s", raw)
				}
				for _, b := range p.Bundles {
					formattest.MustStore(rt, store, b)
				}
			})
		})
	}
}
