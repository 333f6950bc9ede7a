package search

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// A model is a conversation as simple as it can be, and ranks by the formulas
// written out: every message is compared with every other one.
type model struct {
	id    uuid.UUID
	nodes []modelNode // in the order in which they were made
}

type modelNode struct {
	id, parent uuid.UUID
	body       json.RawMessage
	cutoff     uuid.UUID // of a summary, whose parent is its anchor
}

func (m *model) find(id uuid.UUID) *modelNode {
	for i := range m.nodes {
		if m.nodes[i].id == id {
			return &m.nodes[i]
		}
	}
	return nil
}

func (m *model) messages() (messages []modelNode) {
	for _, n := range m.nodes {
		if n.cutoff == uuid.Nil {
			messages = append(messages, n)
		}
	}
	return messages
}

func (m *model) path(id uuid.UUID) (path []modelNode) {
	for n := m.find(id); n != nil; n = m.find(n.parent) {
		path = append([]modelNode{*n}, path...)
	}
	return path
}

// prune deletes a node and all below it.
func (m *model) prune(id uuid.UUID) {
	gone := []uuid.UUID{id}
	for i := 0; i < len(gone); i++ {
		for _, n := range m.nodes {
			if n.parent == gone[i] {
				gone = append(gone, n.id)
			}
		}
	}
	m.nodes = slices.DeleteFunc(m.nodes, func(n modelNode) bool { return slices.Contains(gone, n.id) })
}

// folded gives what the applicable summary of a path replaces.
func (m *model) folded(path []modelNode) []modelNode {
	for i := len(path) - 1; i >= 0; i-- {
		for j := len(m.nodes) - 1; j >= 0; j-- { // the newest first
			s := m.nodes[j]
			if s.cutoff == uuid.Nil || s.parent != path[i].id {
				continue
			}
			first := 0
			for first < len(path) && (roleOf(path[first]) == tree.RoleSystem || roleOf(path[first]) == tree.RoleDeveloper) {
				first++
			}
			end := slices.IndexFunc(path, func(n modelNode) bool { return n.id == s.cutoff }) + 1
			return path[min(first, end):end]
		}
	}
	return nil
}

// speaker tells the speakers of messages apart.
func speaker(n modelNode) string {
	m := chat.Read(n.body)
	name, role := "", ""
	if m.Name != nil {
		name = *m.Name
	}
	if m.Role == tree.RoleUser || m.Role == tree.RoleAssistant {
		role = string(m.Role)
	}
	return role + "/" + name
}

func roleOf(n modelNode) tree.Role { return chat.Read(n.body).Role }

// stemsOf takes a message apart: its stems, and its language.
func stemsOf(body json.RawMessage) (stems []string, name []string, l language) {
	s := newStemmer()
	m := chat.Read(body)
	words := wordsOf(embed.Said(m))
	l = languageOf(words)
	stems = stemsIn(s, words, l)
	if m.Name != nil {
		name = stemsIn(s, wordsOf(*m.Name), 0)
		slices.Sort(name)
		name = slices.Compact(name)
	}
	return stems, name, l
}

func stemsIn(s *stemmer, words []word, l language) (stems []string) {
	for _, w := range words {
		switch {
		case w.bigram:
			stems = append(stems, w.text)
		case !l.isStopword(w.text):
			stems = append(stems, s.stem(w.text, l))
		}
	}
	return stems
}

// scores ranks a scope by the formulas of rank.go, written out.
func scores(nodes []modelNode, question string) map[uuid.UUID]float64 {
	type doc struct {
		modelNode
		stems, name []string
	}
	docs := map[uuid.UUID]*doc{}
	present := map[language]int{}
	words := 0
	for _, n := range nodes {
		stems, name, l := stemsOf(n.body)
		docs[n.id] = &doc{n, stems, name}
		present[l]++
		words += len(stems)
	}
	average := max(1, float64(words)/max(1, float64(len(nodes))))
	var terms [][]string // alternatives
	var all []string
	s := newStemmer()
	for _, w := range wordsOf(question) {
		var t []string
		for l := range languages {
			if l == 0 || present[language(l)] > 0 && present[language(l)]*50 >= len(nodes) {
				for _, stem := range stemsIn(s, []word{w}, language(l)) {
					if !slices.Contains(t, stem) {
						t = append(t, stem)
					}
				}
			}
		}
		if len(t) > 0 && !slices.ContainsFunc(terms, func(other []string) bool { return other[0] == t[0] }) {
			terms = append(terms, t)
			all = append(all, t...)
		}
	}
	found := map[uuid.UUID]float64{}
	var scored []map[uuid.UUID]float64 // for each word, and each pair of them
	var earlier map[uuid.UUID]float64  // of the word before
	for i, t := range terms {
		own, pair := map[uuid.UUID]float64{}, map[uuid.UUID]float64{}
		for _, d := range docs {
			for _, stem := range append(slices.Clone(d.stems), d.name...) {
				if slices.Contains(t, stem) {
					own[d.id]++
				}
			}
			for j := range d.stems[:max(0, len(d.stems)-1)] {
				same := func(stem string, terms []string) bool {
					return slices.ContainsFunc(terms, func(term string) bool { return termOf(term).short() == termOf(stem).short() })
				}
				if i > 0 && earlier[d.id] > 0 && own[d.id] > 0 && same(d.stems[j], terms[i-1]) && same(d.stems[j+1], t) {
					pair[d.id] = 1
				}
			}
		}
		earlier = maps.Clone(own)
		n, df := float64(len(docs)), float64(len(own))
		rarity := math.Log(1 + (n-df+0.5)/(df+0.5))
		for id, count := range own {
			own[id] = rarity * count * (k1 + 1) / (count + k1*(1-b+b*float64(len(docs[id].stems))/average))
		}
		df = float64(len(pair))
		for id := range pair {
			pair[id] = pairFactor * math.Log(1+(n-df+0.5)/(df+0.5))
		}
		scored = append(scored, own, pair)
	}
	lone := 1.0
	answers, pairs := 0, 0
	for _, d := range docs {
		if above := docs[d.parent]; above != nil {
			pairs++
			if speaker(d.modelNode) != speaker(above.modelNode) {
				answers++
			}
		}
	}
	if float64(answers) < aloneShare*float64(pairs) {
		lone = aloneFactor
	}
	for _, own := range scored {
		best := map[uuid.UUID]float64{}
		for id, score := range own {
			best[id] = max(best[id], score)
			reach := math.Pow(min(1, reachWords/max(1, float64(len(docs[id].stems)))), reachPower)
			// From here up, and from each message to those above it that have the word.
			between := 1.0
			at := docs[docs[id].parent]
			for step := 0; step < steps && at != nil; step++ {
				best[at.id] = max(best[at.id], score*reach*lone*before*between)
				between *= math.Exp(-float64(len(at.stems)) / decayWords)
				at = docs[at.parent]
			}
		}
		for _, d := range docs {
			between := 1.0
			at := docs[d.parent]
			for step := 0; step < steps && at != nil; step++ {
				if score, ok := own[at.id]; ok {
					reach := math.Pow(min(1, reachWords/max(1, float64(len(at.stems)))), reachPower)
					best[d.id] = max(best[d.id], score*reach*lone*after*between)
				}
				between *= math.Exp(-float64(len(at.stems)) / decayWords)
				at = docs[at.parent]
			}
		}
		for id, score := range best {
			found[id] += score
		}
	}
	var said, spoken [2]float64 // words and messages of users and assistants
	for _, d := range docs {
		if i := slices.Index([]tree.Role{tree.RoleUser, tree.RoleAssistant}, roleOf(d.modelNode)); i >= 0 {
			said[i] += float64(len(d.stems))
			spoken[i]++
		}
	}
	userFactor := math.Pow((said[1]/max(1, spoken[1]))/max(1, said[0]/max(1, spoken[0])), userPower)
	for id := range found {
		d := docs[id]
		found[id] *= math.Pow(min(1, (float64(len(d.stems))+1)/shortWords), shortPower)
		if roleOf(d.modelNode) == tree.RoleUser {
			found[id] *= min(userMost, max(1, userFactor))
		}
		if slices.ContainsFunc(d.name, func(stem string) bool { return slices.Contains(all, stem) }) {
			found[id] *= speakerFactor
		}
	}
	return found
}
