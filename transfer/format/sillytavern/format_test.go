package sillytavern_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/format/sillytavern"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

var suite = formattest.Suite{
	Format:   sillytavern.Format{},
	Fixtures: []string{"sillytavern.jsonl"},
	Sample: formattest.Sample{
		Before:  `{"user_name":"A","character_name":"B","chat_metadata":{}}` + "\n",
		Between: "\n",
		After:   "\n",
		Element: `{"name":"A","is_user":true,"is_system":false,"mes":"a%[1]d","n":%[2]d%[3]s}`,
		Text:    `{"name":"A","is_user":true,"is_system":false,"mes":"%s"}`,
		Blocks:  `{"name":"B","is_user":false,"is_system":false,"mes":"a","swipe_id":0,"swipes":[%s]}`,
		Block:   `"a"`,
	},
}

func TestFormat(t *testing.T) { formattest.Run(t, suite) }

func FuzzFormat(f *testing.F) { formattest.Fuzz(f, suite) }
