package pi_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/pi"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   pi.Format{},
	Fixtures: []string{"pi.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"type":"session","id":"c","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"type":"message","id":"e%[1]d","parentId":"e%[2]d","message":{"role":"user","content":"a"}%[3]s}`,
		Text:    `{"type":"message","id":"e","message":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","id":"e","message":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"toolCall","id":"i%[1]d","name":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
