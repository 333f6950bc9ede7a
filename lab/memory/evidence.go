package memory

import (
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// evidence is what a summary should still hold: of the messages that hold the
// evidence of a chat's questions the facts, the rare words and the sentences, and the
// questions' answers.
type evidence struct {
	facts   map[string]bool
	words   map[string]bool
	units   [][]string // informative words of each sentence
	answers [][]string // and of each answer
}

// commonIn is in which share of the messages a word is no longer rare.
const commonIn = 0.02

func newEvidence(c Chat) evidence {
	df := map[string]int{}
	for _, m := range c.Messages {
		words := plainWords(m.Text)
		slices.Sort(words)
		for _, w := range slices.Compact(words) {
			df[w]++
		}
	}
	rare := func(w string) bool { return len(w) > 2 && float64(df[w]) <= max(2, commonIn*float64(len(c.Messages))) }
	e := evidence{facts: map[string]bool{}, words: map[string]bool{}}
	named := map[int]bool{}
	for _, q := range c.Questions {
		for i := range q.Evidence {
			named[i] = true
		}
		if words := plainWords(q.Answer); len(words) > 0 {
			e.answers = append(e.answers, words)
		}
	}
	for i := range c.Messages {
		if !named[i] {
			continue
		}
		text := prose(c.Messages[i].Text)
		for _, fact := range facts(text) {
			e.facts[fact] = true
		}
		for _, sentence := range sentencesOf(text) {
			var unit []string
			for _, w := range plainWords(sentence) {
				if rare(w) {
					e.words[w] = true
				}
				if len(w) > 2 && !slices.Contains(unit, w) {
					unit = append(unit, w)
				}
			}
			if len(unit) >= minUnit {
				e.units = append(e.units, unit)
			}
		}
	}
	return e
}

// Bounds of a unit: how many words say something, and what share of them one
// line of a summary must have.
const (
	minUnit   = 4
	heldShare = 0.7
)

// heldBy measures a summary. Its index counts for facts and words, and not for
// units and answers.
func (e evidence) heldBy(text string) (h Held) {
	all := normal(text)
	words := map[string]bool{}
	var lines []map[string]bool
	for line := range strings.SplitSeq(text, "\n") {
		set := map[string]bool{}
		for _, w := range plainWords(line) {
			set[w], words[w] = true, true
		}
		if !isIndex(line) {
			lines = append(lines, set)
		}
	}
	inLine := func(share float64) func([]string) bool {
		return func(unit []string) bool {
			return slices.ContainsFunc(lines, func(line map[string]bool) bool {
				there := 0
				for _, w := range unit {
					if line[w] {
						there++
					}
				}
				return float64(there) >= share*float64(len(unit))
			})
		}
	}
	h.Facts = shareOf(maps.Keys(e.facts), func(fact string) bool { return containsWord(all, fact) })
	h.Words = shareOf(maps.Keys(e.words), func(w string) bool { return words[w] })
	h.Units = shareOf(slices.Values(e.units), inLine(heldShare))
	h.Answers = shareOf(slices.Values(e.answers), inLine(1))
	return h
}

// shareOf counts those of all that are held.
func shareOf[T any](all iter.Seq[T], held func(T) bool) (s Share) {
	for x := range all {
		if s.Of++; held(x) {
			s.Held++
		}
	}
	return s
}

// isIndex tells the closing index of a digest.
func isIndex(line string) bool { return strings.HasPrefix(line, "Recall finds ") }

var codeBlock = regexp.MustCompile("(?s)```.*?(```|$)")

// prose is a text without its blocks of code.
func prose(text string) string { return codeBlock.ReplaceAllString(text, "\n") }

var (
	sentenceBreak = regexp.MustCompile(`[.!?…]+["')\]*]*\s+|\n+|[。！？]`)
	address       = regexp.MustCompile(`(?:https?://|www\.)[^\s<>()"'` + "`" + `]+|[\w.+-]+@[\w-]+\.[\w.-]*\w`)
	quoted        = regexp.MustCompile(`"([^"\n]{2,60})"|“([^”\n]{2,60})”|` + "`([^`\n]{2,60})`")
	number        = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}.,:%/_-]*`)
	dates         = regexp.MustCompile(`(?i)\b(?:(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber)\s+\d{1,2}\b|\b\d{1,2}\s+(?:(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber)\b`)
	names         = regexp.MustCompile(`\p{Lu}[\p{Ll}\p{M}]+(?:[ -]\p{Lu}[\p{Ll}\p{M}]+)*`)
)

// facts are the numbers, dates, names, addresses and quoted strings of a text,
// in small letters.
func facts(text string) (all []string) {
	add := func(fact string) {
		if fact = strings.Trim(normal(fact), " .,:;!?*_-/"); fact != "" {
			all = append(all, fact)
		}
	}
	for _, m := range address.FindAllString(text, -1) {
		add(m)
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		add(m[1] + m[2] + m[3])
	}
	for _, m := range dates.FindAllString(text, -1) {
		add(m)
	}
	bare := address.ReplaceAllString(text, " ")
	for _, m := range number.FindAllString(bare, -1) {
		if strings.ContainsFunc(m, unicode.IsDigit) {
			add(m)
		}
	}
	for _, sentence := range sentencesOf(bare) {
		for _, at := range names.FindAllStringIndex(sentence, -1) {
			if strings.TrimLeft(sentence[:at[0]], " *_#>\"'-([0123456789.)") == "" {
				continue // a sentence begins with a capital
			}
			add(sentence[at[0]:at[1]])
		}
	}
	return all
}

// normal is a text as facts are compared: in small letters, without emphasis,
// with single spaces.
func normal(text string) string {
	return strings.Join(strings.Fields(strings.ToLower(strings.NewReplacer("*", "", "’", "'", "“", `"`, "”", `"`).Replace(text))), " ")
}

// containsWord tells whether text has a fact that isn't part of a longer word.
func containsWord(text, fact string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], fact)
		if i < 0 {
			return false
		}
		at += i
		if !wordAt(text, at-1) && !wordAt(text, at+len(fact)) {
			return true
		}
		at++
	}
}

func wordAt(text string, i int) bool {
	return i >= 0 && i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'z')
}

// sentencesOf cuts a text after the marks that end a sentence, and at line
// breaks.
func sentencesOf(text string) (all []string) {
	at := 0
	for _, end := range sentenceBreak.FindAllStringIndex(text, -1) {
		all = append(all, text[at:end[1]])
		at = end[1]
	}
	all = append(all, text[at:])
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}
