package audit

import (
	"strings"

	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// Sentences are added where so many tokens are left of the target, and as long as the
// summary's message has no more than its share of what it takes the place of.
const (
	leastRoom   = 40
	sourceShare = 3
	frame       = 60 // tokens of the message besides the text
)

// Fill adds what a summary lacks, as far as the target has room: below a heading in
// the summary's language, the sentences of the messages and of the prior summary that
// say the most of what is missing. It returns the summary as it is where instructions
// were given, since they may say what is to be left out.
func Fill(in prompt.Input, summary string, counter tokens.Counter) string {
	heading, ok := headings[languageOf(summary)]
	if !ok {
		heading = headings["en"]
	}
	heading = "## " + heading + "\n"
	if last := strings.LastIndex(summary, "\n## "); last >= 0 && strings.HasPrefix(summary[last+1:], heading) {
		heading = "" // of the prior summary, with what was added to it
	} else {
		heading = "\n" + heading
	}
	room := min(in.TargetTokens, sourceTokens(in)/sourceShare-frame) - counter.Count(summary) - counter.Count(heading)
	if room < leastRoom || in.Instructions != "" {
		return summary
	}
	in.Fold, in.Leaving = in.Summarized(), nil
	lines := digest.Fill(in, summary, room, counter)
	if lines == "" {
		return summary
	}
	return summary + "\n" + heading + lines
}
