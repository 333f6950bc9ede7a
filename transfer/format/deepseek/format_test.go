package deepseek_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/deepseek"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   deepseek.Format{},
	Fixtures: []string{"deepseek.json"},
	Sample: formattest.Sample{
		Before:  `[{"id":"c","title":"T","inserted_at":"2026-01-01T00:00:00Z","mapping":{`,
		Between: ",",
		After:   `}}]`,
		Element: `"n%[1]d":{"parent":"n%[2]d","message":{"fragments":[{"type":"REQUEST","content":"a"}]}%[3]s}`,
		Text:    `"n":{"message":{"fragments":[{"type":"REQUEST","content":"%s"}]}}`,
		Blocks:  `"n":{"message":{"fragments":[%s]}}`,
		Block:   `{"type":"RESPONSE","content":"a"}`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
