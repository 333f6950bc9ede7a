package llamacpp_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/llamacpp"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   llamacpp.Format{},
	Fixtures: []string{"llamacpp.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"type":"session","id":"c","name":"T","currNode":"m1"}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"type":"message","message":{"id":"m%[1]d","parent":"m%[2]d","role":"user","content":"a"%[3]s}}`,
		Text:    `{"type":"message","message":{"id":"m","role":"user","content":"%s"}}`,
		Blocks:  `{"type":"message","message":{"id":"m","role":"user","content":[%s]}}`,
		Block:   `{"type":"text","text":"a"}`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
