package digest

import (
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

var (
	// priorSpeaker matches who said a line of a digest.
	priorSpeaker = regexp.MustCompile(`^((system|developer|user|assistant|tool)(?: [\p{L}\p{N}][\p{L}\p{M}\p{N}_.-]{0,39})?): `)
	// priorName matches the name of a person who said a line of a digest of people's talk.
	priorName = regexp.MustCompile(`^([\p{L}\p{N}][\p{L}\p{M}\p{N}_.' -]{0,39}): `)
	// priorDay matches the day of a line, which holds for those below it, too.
	priorDay = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\d)\] `)
	// aboutDecisions matches headings of summaries that a model wrote.
	aboutDecisions = regexp.MustCompile(`(?i)decision|preference|goal|constraint|requirement|rule|correction|entscheidung|ziel|décision|préférence|objectif|decisión|preferencia|objetivo|решени|предпочтени|цел|决定|偏好|目标|決定|好み|目標|결정|선호|목표`)
)

// readPrior makes items of the summary to be merged: of a digest its lines as
// they are, so that merging again and again changes nothing in them, of
// another's prose its sentences.
func (r *reader) readPrior(prior string) {
	r.text = oneLine(prior) != ""
	from := source{prior: true}
	rest, isDigest := strings.CutPrefix(prior, strings.TrimSpace(intro))
	if !isDigest {
		for s := range sentences(prior) {
			r.message++
			if s.lead {
				from.decides = aboutDecisions.MatchString(s.text)
			} else {
				r.add(s, from)
			}
		}
		return
	}
	r.assisted = strings.Contains(prior, "\n- assistant: ")
	for line := range strings.SplitSeq(rest, "\n") {
		index, isIndex := strings.CutPrefix(line, indexLine)
		said, goesOn := strings.CutPrefix(line, "  ")
		said, begins := strings.CutPrefix(said, "- ")
		if who := priorSpeaker.FindStringSubmatch(said); begins && who != nil {
			from.speaker, from.role, said = who[1], tree.Role(who[2]), said[len(who[0]):]
		} else if who := priorName.FindStringSubmatch(said); begins && who != nil && !r.assisted {
			from.speaker, from.role, said = who[1], tree.RoleUser, said[len(who[0]):]
		} else if begins {
			from.speaker, from.role = "", ""
		}
		switch {
		case isIndex:
			r.readIndex(index)
		case line == headingDecisions, line == headingFacts:
			from.decides, from.day = line == headingDecisions, ""
		case begins || goesOn:
			r.message++
			if at := priorDay.FindStringSubmatch(said); at != nil {
				from.day, said = at[1], said[len(at[0]):]
			}
			r.add(sentence{text: said}, from)
		}
	}
}
