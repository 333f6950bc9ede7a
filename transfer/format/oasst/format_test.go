package oasst_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/oasst"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   oasst.Format{},
	Fixtures: []string{"oasst.jsonl"},
	Sample: formattest.Sample{
		Before:    `{"message_tree_id":"t","prompt":{"message_id":"p","role":"prompter","text":"q","replies":[`,
		Between:   ",",
		After:     "]}}\n",
		Element:   `{"message_id":"m%[1]d","role":"assistant","text":"a","p":%[2]d%[3]s}`,
		Text:      `{"message_id":"m","role":"assistant","text":"%s"}`,
		Blocks:    `{"message_id":"m","role":"assistant","text":"a","labels":[%s]}`,
		Block:     `0`,
		Nested:    `{"message_id":"m%[1]d","role":"assistant","text":"a","replies":[`,
		NestedEnd: `]}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
