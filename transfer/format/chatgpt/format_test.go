package chatgpt_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/chatgpt"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   chatgpt.Format{},
	Fixtures: []string{"chatgpt.json"},
	Sample: formattest.Sample{
		Before:  `[{"title":"T","create_time":1,"id":"c","current_node":"n1","mapping":{`,
		Between: ",",
		After:   `}}]`,
		Element: `"n%[1]d":{"parent":"n%[2]d","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["a"]}}%[3]s}`,
		Text:    `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["%s"]}}}`,
		Blocks:  `"n":{"message":{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[%s]}}}`,
		Block:   `"a"`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite, "demo.json") }
