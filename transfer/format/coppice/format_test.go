package coppice_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   coppice.Format{},
	Fixtures: []string{"coppice.jsonl", "coppice-unsound.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"type":"conversation","version":1,"id":"01990000-0000-7000-8000-0000000000c1","title":"T","head_id":null,"metadata":{},"settings":{}}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"type":"message","id":"01990000-0000-7000-8000-%012[1]d","parent_id":null,"body":{"role":"user","content":"a"},"p":%[2]d%[3]s}`,
		Text:    `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","id":"01990000-0000-7000-8000-000000000001","body":{"role":"assistant","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
