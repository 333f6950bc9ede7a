package lmstudio_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/lmstudio"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   lmstudio.Format{},
	Fixtures: []string{"lm-studio.json"},
	Sample: formattest.Sample{
		Before:  `{"name":"T","createdAt":1760000000000,"systemPrompt":"","messages":[`,
		Between: ",",
		After:   `]}`,
		Element: `{"versions":[{"role":"user","content":[{"type":"text","text":"a"}]}],"currentlySelected":0,"n":[%[1]d,%[2]d]%[3]s}`,
		Text:    `{"versions":[{"role":"user","content":[{"type":"text","text":"%s"}]}],"currentlySelected":0}`,
		Blocks:  `{"versions":[{"role":"assistant","content":[%s]}],"currentlySelected":0}`,
		Block:   `{"type":"text","text":"a"}`,
		Calls:   `{"type":"toolCallRequest","callId":"i%[1]d","name":"f","parameters":{}}`,
		Weight:  2,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
