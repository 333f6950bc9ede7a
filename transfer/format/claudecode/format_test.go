package claudecode_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/claudecode"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   claudecode.Format{},
	Fixtures: []string{"claude-code.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"type":"user","uuid":"u0","sessionId":"c","message":{"role":"user","content":"q"}}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"type":"user","uuid":"u%[1]d","parentUuid":"u%[2]d","sessionId":"c","message":{"role":"user","content":"a"}%[3]s}`,
		Text:    `{"type":"user","uuid":"u","sessionId":"c","message":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"assistant","uuid":"u","sessionId":"c","message":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"tool_use","id":"i%[1]d","name":"f"}`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
