package chatbox_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/chatbox"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   chatbox.Format{},
	Fixtures: []string{"chatbox.json"},
	Sample: formattest.Sample{
		Before:  `{"session:c":{"id":"c","name":"T","messages":[`,
		Between: ",",
		After:   `]}}`,
		Element: `{"id":"m%[1]d","p":%[2]d,"role":"user","content":"a"%[3]s}`,
		Text:    `{"id":"m","role":"user","content":"%s"}`,
		Blocks:  `{"id":"m","role":"assistant","contentParts":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool-call","toolCallId":"i%[1]d","toolName":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
