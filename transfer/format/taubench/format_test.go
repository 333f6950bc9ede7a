package taubench_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/taubench"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   taubench.Format{},
	Fixtures: []string{"tau-bench.json"},
	Sample: formattest.Sample{
		Before:  `[{"task_id":1,"trial":0,"reward":1,"info":{},"traj":[`,
		Between: ",",
		After:   `]}]`,
		Element: `{"role":"user","content":"a%[1]d","p":%[2]d%[3]s}`,
		Text:    `{"role":"user","content":"%s"}`,
		Blocks:  `{"role":"assistant","content":[%s]}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"text","text":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
