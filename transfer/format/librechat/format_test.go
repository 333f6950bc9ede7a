package librechat_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/librechat"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   librechat.Format{},
	Fixtures: []string{"librechat.json"},
	Sample: formattest.Sample{
		Before:    `{"conversationId":"c","title":"T","messages":[`,
		Between:   ",",
		After:     `]}`,
		Element:   `{"messageId":"m%[1]d","parentMessageId":"m%[2]d","isCreatedByUser":true,"text":"a"%[3]s}`,
		Text:      `{"messageId":"m","isCreatedByUser":true,"text":"%s"}`,
		Blocks:    `{"messageId":"m","content":[%s]}`,
		Block:     `{"type":"text","text":"a"}`,
		Calls:     `{"type":"tool_call","tool_call":{"name":"f","id":"i%[1]d","output":"o"}}`,
		Nested:    `{"messageId":"m%[1]d","text":"a","children":[`,
		NestedEnd: `]}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
