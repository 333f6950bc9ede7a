package messages_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/messages"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   messages.Format{},
	Fixtures: []string{"messages.jsonl", "message-list.json"},
	Sample: formattest.Sample{
		Before:  `[`,
		Between: ",",
		After:   `]`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":null,"tool_calls":[%s]}`,
		Block:   `{"id":"i%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
