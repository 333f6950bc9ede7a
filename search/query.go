package search

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// MaxTerms is how many different words a query has at most.
const MaxTerms = 16

// A query is what a search looks for: one of the alternatives, all clauses of it.
type query struct {
	text         string
	alternatives [][]*clause
	terms        []*wanted // the different words, those that must not occur left out
}

// A clause is a word, or words that stand together.
type clause struct {
	words     []*wanted
	negated   bool
	beginning bool // a word that goes on matches, too
}

// A wanted is a word that is sought, and how the index of words may have it.
type wanted struct {
	text   string // in lower case, without accents
	hashes []hash
}

// A reading says which words of a query must occur.
type reading int

const (
	allWords reading = iota // as the query says
	anyWord                 // one of those that are not quoted
)

// queryPart is one of a query: a quoted text or a word, with its negation.
var queryPart = regexp.MustCompile(`-*"[^"]*"?|[^\s"]+`)

// parse reads a query in the syntax of web searches. It has no alternatives where
// the text has no word.
func parse(text string, r reading) (query, error) {
	text = inOneLine(text)
	if err := tree.CheckQuery(text); err != nil {
		return query{}, err
	}
	if strings.TrimSpace(text) == "" {
		return query{}, fault.New(fault.Invalid, "empty_query", "query", "Say which words to look for.")
	}
	p := parser{known: map[string]*wanted{}, stems: newStemmer()}
	var all [][]*clause
	var current []*clause
	parts := queryPart.FindAllString(text, -1)
	for i, part := range parts {
		if strings.EqualFold(part, "or") {
			all, current, r = append(all, current), nil, allWords
			continue
		}
		if c := p.clause(part, i == len(parts)-1 && strings.HasSuffix(text, part)); c != nil {
			current = append(current, c)
		}
	}
	all = slices.DeleteFunc(append(all, current), func(a []*clause) bool { return len(a) == 0 })
	if len(p.known) > MaxTerms {
		return query{}, fault.New(fault.Invalid, "too_many_terms", "query", "The query has %d different words, and %d is the most. Leave some out.", len(p.known), MaxTerms)
	}
	if r == anyWord && len(all) == 1 {
		all = loosened(all[0])
	}
	possible := slices.DeleteFunc(slices.Clone(all), contradicts)
	if len(all) > 0 && len(possible) == 0 {
		return query{}, fault.New(fault.Invalid, "no_term_to_find", "query", "The query wants a word and refuses it, so no message can match. Leave one of the two out.")
	}
	q := query{text: text, alternatives: possible}
	for _, a := range possible {
		if !slices.ContainsFunc(a, func(c *clause) bool { return !c.negated }) {
			return query{}, fault.New(fault.Invalid, "no_term_to_find", "query", "The query only says what must not occur, which most messages match. Add a word that must.")
		}
		for _, c := range a {
			for _, t := range c.words {
				if !c.negated && !slices.Contains(q.terms, t) {
					q.terms = append(q.terms, t)
				}
			}
		}
	}
	return q, nil
}

// contradicts tells whether an alternative refuses what it wants. A search for it would
// look at every message in vain.
func contradicts(alternative []*clause) bool {
	return slices.ContainsFunc(alternative, func(wants *clause) bool {
		return !wants.negated && !wants.beginning && slices.ContainsFunc(alternative, func(c *clause) bool {
			return c.negated && slices.Equal(c.words, wants.words)
		})
	})
}

// inOneLine takes tabs and line ends, which a pasted query has, for blanks.
func inOneLine(query string) string {
	return strings.NewReplacer("\t", " ", "\r", " ", "\n", " ").Replace(query)
}

// loosened makes alternatives of the single words, each beside what must and what
// must not occur.
func loosened(all []*clause) (alternatives [][]*clause) {
	var one, must []*clause
	for _, c := range all {
		if c.negated || c.quoted() {
			must = append(must, c)
		} else {
			one = append(one, c)
		}
	}
	if len(one) == 0 {
		return [][]*clause{must}
	}
	for _, c := range one {
		alternatives = append(alternatives, append([]*clause{c}, must...))
	}
	return alternatives
}

func (c *clause) quoted() bool { return len(c.words) > 1 }

type parser struct {
	known map[string]*wanted
	stems *stemmer
}

// clause reads a part of a query; nil where it has no word. last tells that the
// query ends with it: its word may go on then, if it has no other sign in it.
func (p *parser) clause(part string, last bool) *clause {
	c := &clause{negated: strings.HasPrefix(part, "-")}
	part = strings.TrimLeft(part, "-")
	for _, w := range wordsOf(part) {
		if !w.part {
			c.words = append(c.words, p.term(w))
		}
	}
	if len(c.words) == 0 {
		return nil
	}
	first := c.words[0].text
	kind := kindOf(firstLetter(first))
	goesOn := last && !c.negated && kind != sign && strings.IndexFunc(part, func(r rune) bool { return kindOf(r) == between }) < 0
	c.beginning = len(c.words) == 1 && (goesOn || kind == dense && utf8.RuneCountInString(first) == 1)
	return c
}

func (p *parser) term(w word) *wanted {
	text := withoutAccents(w.text)
	t, known := p.known[text]
	if !known {
		t = &wanted{text: text}
		p.known[text] = t
	}
	for _, stem := range p.stems.forms(w) {
		if h := termOf(stem).hash(); !slices.Contains(t.hashes, h) {
			t.hashes = append(t.hashes, h)
		}
	}
	slices.Sort(t.hashes)
	return t
}

// forms returns what a word may be in the index of words, whatever its language.
func (s *stemmer) forms(w word) []string {
	forms := []string{withoutAccents(w.text)}
	if w.bigram {
		return forms
	}
	for l := range languages {
		if f := s.stem(w.text, language(l)); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	return forms
}

// indexed returns the hashes of a text's words, as many as there are words.
func (s *stemmer) indexed(words []word) []hash {
	l := languageOf(words)
	out := make([]hash, len(words))
	for i, w := range words {
		t, ok := s.termIn(w, l)
		if !ok {
			t = termOf(withoutAccents(w.text))
		}
		out[i] = t.hash()
	}
	return out
}

// mask returns the messages of a part that may match.
func (q query) mask(p *part) (mask uint64) {
	for _, a := range q.alternatives {
		all := ^uint64(0)
		for _, clause := range sure(a) {
			for _, t := range clause.words {
				all &= p.having(t)
			}
		}
		mask |= all
	}
	return mask
}

// sure returns the clauses by which the index of words finds what matches an
// alternative. The index has no beginnings of words. So where there are others, it
// finds what matches those, and else the beginning as a whole word.
func sure(alternative []*clause) (out []*clause) {
	for _, c := range alternative {
		if !c.negated && !c.beginning {
			out = append(out, c)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, c := range alternative {
		if !c.negated {
			out = append(out, c)
		}
	}
	return out
}

// begins tells whether the index of words finds only whole words where their
// beginnings match, too.
func (q query) begins() bool {
	return slices.ContainsFunc(q.alternatives, func(a []*clause) bool {
		return slices.ContainsFunc(sure(a), func(c *clause) bool { return c.beginning })
	})
}

// A said is a text that was taken apart.
type said struct {
	words []word
	texts []string // of the words, without accents
}

func sayingOf(text string) said {
	s := said{words: wordsOf(text)}
	s.texts = make([]string, len(s.words))
	for i, w := range s.words {
		s.texts[i] = withoutAccents(w.text)
	}
	return s
}

// mayMatch tells whether it is worth taking a text apart: false is certain.
func (q query) mayMatch(text string) bool {
	lower := strings.ToLower(text)
	folds := strings.ContainsFunc(lower, func(r rune) bool { return r >= utf8.RuneSelf && unicode.IsLetter(r) })
	return folds || slices.ContainsFunc(q.alternatives, func(a []*clause) bool {
		return !slices.ContainsFunc(a, func(c *clause) bool {
			return !c.negated && slices.ContainsFunc(c.words, func(t *wanted) bool { return !strings.Contains(lower, t.text) })
		})
	})
}

func (q query) matches(s said) bool {
	return slices.ContainsFunc(q.alternatives, func(a []*clause) bool {
		for _, c := range a {
			if (len(c.places(s)) > 0) == c.negated {
				return false
			}
		}
		return true
	})
}

// places returns where in a text a clause stands: the numbers of its first words.
func (c *clause) places(s said) (at []int) {
	for i := range s.texts {
		if c.standsAt(s, i) {
			at = append(at, i)
		}
	}
	return at
}

// standsAt tells whether a clause's first word is one of a text's, and the others follow it.
func (c *clause) standsAt(s said, i int) bool {
	first := c.words[0].text
	if c.beginning {
		return strings.HasPrefix(s.texts[i], first) || s.words[i].bigram && strings.HasSuffix(s.texts[i], first)
	}
	if s.texts[i] != first {
		return false
	}
	for _, t := range c.words[1:] {
		for i++; i < len(s.words) && s.words[i].part; i++ {
		}
		if i >= len(s.words) || s.texts[i] != t.text {
			return false
		}
	}
	return true
}
