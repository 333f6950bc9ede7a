package sweagent_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/sweagent"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   sweagent.Format{},
	Fixtures: []string{"swe-agent.json", "swe-agent-steps.json"},
	Sample: formattest.Sample{
		Before:  `{"environment":"e","history":[`,
		Between: ",",
		After:   `]}`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
