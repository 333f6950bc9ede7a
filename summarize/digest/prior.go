package digest

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// priorSpeaker matches who said a line of a digest.
var priorSpeaker = regexp.MustCompile(`^((system|developer|user|assistant|tool)(?: [\p{L}\p{N}][\p{L}\p{M}\p{N}_.-]{0,39})?): `)

// readPrior makes items of the summary to be merged: of a digest its lines as
// they are, so that merging again and again changes nothing in them, of
// another's prose its sentences.
func (r *reader) readPrior(prior string) {
	r.text = strings.TrimSpace(prompt.Line(prior)) != ""
	first, rest, _ := strings.Cut(prior, "\n")
	own := introLine.FindStringSubmatch(first)
	if own != nil {
		n, _ := strconv.Atoi(own[2]) // nine digits
		r.messages += n
		r.unknown = own[1] != ""
		prior = rest
	} else {
		r.unknown = strings.TrimSpace(prior) != ""
	}
	r.assisted = strings.Contains(prior, "- assistant: ")
	section := sectionFacts
	var under [sections]int // lines
	var speaker [2]string   // of the line before, and its role
	for line := range strings.SplitSeq(prior, "\n") {
		goesOn := strings.HasPrefix(line, "  ") // sameSpeaker
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if entries, ok := strings.CutPrefix(line, indexLine); ok && own != nil {
			r.readIndex(entries, true)
			continue
		}
		if entries, ok := strings.CutPrefix(line, indexWords); ok && own != nil {
			r.readIndex(entries, false)
			continue
		}
		if line == indexHeading {
			continue
		}
		if s, ok := headingSection(line); ok {
			section = s
			continue
		}
		about := messageFacts{section: section, prior: true}
		if under[section] < len(openingWorth) {
			about.opening = openingWorth[under[section]]
			under[section]++
		}
		r.message++
		if item, ok := strings.CutPrefix(line, "- "); (ok || goesOn) && own != nil {
			if said := priorSpeaker.FindStringSubmatch(item); ok && said != nil {
				speaker = [2]string(said[1:3])
				item = item[len(said[0]):]
			} else if ok {
				speaker = [2]string{}
			}
			about.speaker, about.role = speaker[0], tree.Role(speaker[1])
			r.add(sentence{text: item}, about)
			continue
		}
		for s := range sentences(line) {
			r.add(s, about)
			r.message++
		}
	}
}

// headingSection tells a heading, and which of a digest's sections it is.
func headingSection(line string) (section, bool) {
	for s, heading := range headings {
		if line == heading {
			return section(s), true
		}
	}
	title := strings.Trim(line, "#*_: ")
	if len(title) > 60 || title == line || !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "**") && !strings.HasSuffix(line, ":") ||
		strings.HasPrefix(line, "**") && !strings.HasSuffix(strings.TrimRight(line, ":"), "**") {
		return 0, false
	}
	title = strings.ToLower(title)
	for _, known := range []struct {
		section section
		words   string
	}{
		{sectionDecisions, "decision preference goal constraint requirement rule correction entscheidung ziel décision préférence objectif decisión preferencia objetivo решени предпочтени цел 决定 偏好 目标 決定 好み 目標 결정 선호 목표"},
		{sectionDone, "done complete finish erledigt terminé fait hecho completado сделано готово 完成 完了 완료"},
		{sectionOpen, "open progress next pending todo question offen cours pendiente próxim открыт следующ 待 下一步 未 残 次 진행 다음"},
	} {
		for word := range strings.FieldsSeq(known.words) {
			if strings.Contains(title, word) {
				return known.section, true
			}
		}
	}
	return sectionFacts, true
}
