package claude_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/claude"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   claude.Format{},
	Fixtures: []string{"claude.json"},
	Sample: formattest.Sample{
		Before:  `[{"uuid":"c","name":"T","chat_messages":[`,
		Between: ",",
		After:   `]}]`,
		Element: `{"uuid":"m%[1]d","sender":"human","text":"a","p":%[2]d%[3]s}`,
		Text:    `{"uuid":"m","sender":"human","text":"%s"}`,
		Blocks:  `{"uuid":"m","sender":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
