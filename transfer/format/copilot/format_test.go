package copilot_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/copilot"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   copilot.Format{},
	Fixtures: []string{"copilot.json"},
	Sample: formattest.Sample{
		Before:  `{"sessionId":"c","requests":[`,
		Between: ",",
		After:   `]}`,
		Element: `{"requestId":"r%[1]d","p":%[2]d,"message":{"text":"a"}%[3]s}`,
		Text:    `{"requestId":"r","message":{"text":"%s"}}`,
		Blocks:  `{"requestId":"r","message":{"text":"a"},"response":[%s]}`,
		Block:   `{"kind":"x"}`,
		Calls:   `{"kind":"toolInvocationSerialized","toolCallId":"i%[1]d","toolId":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
