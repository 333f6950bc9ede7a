package openwebui_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/openwebui"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   openwebui.Format{},
	Fixtures: []string{"openwebui.json"},
	Sample: formattest.Sample{
		Before:  `[{"id":"c","title":"T","chat":{"history":{"currentId":"m1","messages":{`,
		Between: ",",
		After:   `}}}}]`,
		Element: `"m%[1]d":{"parentId":"m%[2]d","role":"user","content":"a"%[3]s}`,
		Text:    `"m":{"role":"user","content":"%s"}`,
		Blocks:  `"m":{"role":"assistant","output":[%s]}`,
		Block:   `{"type":"message","content":[{"text":"a"}]}`,
		Calls:   `{"type":"function_call","call_id":"i%[1]d","name":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
