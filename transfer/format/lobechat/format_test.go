package lobechat_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/lobechat"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   lobechat.Format{},
	Fixtures: []string{"lobechat.json"},
	Sample: formattest.Sample{
		Before:  `{"data":{"topics":[{"id":"t","title":"T"}],"messages":[`,
		Between: ",",
		After:   `]}}`,
		Element: `{"id":"m%[1]d","parentId":"m%[2]d","role":"user","content":"a","topicId":"t"%[3]s}`,
		Text:    `{"id":"m","role":"user","content":"%s","topicId":"t"}`,
		Blocks:  `{"id":"m","role":"assistant","content":"a","topicId":"t","tools":[%s]}`,
		Block:   `{"apiName":"f"}`,
		Calls:   `{"id":"i%[1]d","apiName":"f"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
