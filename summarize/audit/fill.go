package audit

import (
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// Sentences are added where so many tokens are left of the target, and as long as the
// summary has no more than its share of what it folds, besides the summary before.
const (
	leastRoom   = 40
	sourceShare = 3
	frame       = 60 // tokens of the message besides the text
)

// Fill adds what a summary lacks, as far as the target has room: below a heading in
// the summary's language, the sentences of the messages and of the prior summary that
// say the most of what is missing. What tools gave is not among them, since it is
// noise without its summary, and neither is what was added to the prior summary: its
// model has seen that, and left it out. Fill returns the summary as it is where
// instructions were given, since they may say what is to be left out.
func Fill(in prompt.Input, summary string, counter tokens.Counter) string {
	heading, ok := prompt.FilledHeadings[languageOf(summary)]
	if !ok {
		heading = prompt.FilledHeadings["en"]
	}
	heading = "## " + heading + "\n"
	if last := strings.LastIndex(summary, "\n## "); last >= 0 && strings.HasPrefix(summary[last+1:], heading) {
		heading = "" // of the prior summary, with what was added to it
	} else {
		heading = "\n" + heading
	}
	room := min(in.TargetTokens, in.PriorTokens+(sourceTokens(in)-in.PriorTokens)/sourceShare-frame) - counter.Count(summary) - counter.Count(heading)
	if room < leastRoom || in.Instructions != "" {
		return summary
	}
	in.Prior, _ = prompt.CutFilled(in.Prior)
	in.Fold, in.Leaving = slices.DeleteFunc(in.Summarized(), func(m tree.Message) bool { return m.Role == tree.RoleTool }), nil
	in.Files = nil
	lines := digest.Fill(in, summary, room, counter)
	if lines == "" {
		return summary
	}
	return summary + "\n" + heading + lines
}
