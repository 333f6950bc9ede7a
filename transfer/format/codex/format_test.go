package codex_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/codex"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   codex.Format{},
	Fixtures: []string{"codex.jsonl", "codex-bare.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c"}}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"a"}]},"p":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"type":"response_item","payload":{"type":"message","role":"user","content":"%s"}}`,
		Blocks:  `{"type":"response_item","payload":{"type":"message","role":"user","content":[%s]}}`,
		Block:   `{"text":"a"}`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
