package chatbotui_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/chatbotui"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   chatbotui.Format{},
	Fixtures: []string{"chatbot-ui.json"},
	Sample: formattest.Sample{
		Before:  `{"history":[{"id":1,"name":"T","messages":[`,
		Between: ",",
		After:   `]}],"folders":[]}`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
