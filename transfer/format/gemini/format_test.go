package gemini_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/gemini"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   gemini.Format{},
	Fixtures: []string{"gemini-takeout.json"},
	Sample: formattest.Sample{
		Before:  `[`,
		Between: ",",
		After:   `]`,
		Element: `{"title":"Prompted a","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z","n":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"title":"Prompted %s","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z"}`,
		Blocks:  `{"title":"Prompted a","titleUrl":"https://g/c/1","time":"2026-01-01T00:00:00Z","safeHtmlItem":[%s]}`,
		Block:   `{"html":"a"}`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
