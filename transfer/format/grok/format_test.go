package grok_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/grok"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   grok.Format{},
	Fixtures: []string{"grok.json"},
	Sample: formattest.Sample{
		Before:  `{"conversations":[{"conversation":{"id":"c","title":"T"},"responses":[`,
		Between: ",",
		After:   `]}]}`,
		Element: `{"response":{"_id":"r%[1]d","parent_response_id":"r%[2]d","sender":"human","message":"a"%[3]s}}`,
		Text:    `{"response":{"_id":"r","sender":"human","message":"%s"}}`,
		Blocks:  `{"response":{"_id":"r","sender":"human","message":"a","file_attachments":[%s]}}`,
		Block:   `{"fileName":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
