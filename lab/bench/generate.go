package bench

import (
	"math"
	"math/rand/v2"

	"github.com/coppice-chat/coppice/tree"
)

// How often the user of a generated chat does something else than go on, after
// each answer.
const (
	regenerates = 0.10 // asks for the last answer once more
	edits       = 0.05 // says the last message otherwise
	returns     = 0.02 // edits an earlier message, and goes on from there
	switches    = 0.01 // goes back to the branch that was left last, and on there
	furthest    = 12   // turns back to an earlier message
)

// Tokens of a generated message: half have fewer, one in six more than spread
// times as many.
const (
	userTokens      = 40
	assistantTokens = 220
	spread          = 2.2
)

// generate makes up a chat of so many turns of its user's, edits and
// regenerations not counted. The same seed makes the same chat.
func generate(seed uint64, turns int) History {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 0))}
	head, left := -1, -1
	for range turns {
		head = g.turn(head)
		for again := true; again; {
			switch p := g.rand.Float64(); {
			case p < regenerates:
				left, head = head, g.say(g.history[head].Parent, tree.RoleAssistant)
			case p < regenerates+edits:
				left, head = head, g.turn(g.above(head, 1))
			case p < regenerates+edits+returns:
				left, head = head, g.turn(g.above(head, 2+g.rand.IntN(furthest-1)))
			case p < regenerates+edits+returns+switches && left >= 0:
				left, head = head, left
				again = false
			default:
				again = false
			}
		}
	}
	return g.history
}

type generator struct {
	rand    *rand.Rand
	history History
}

// turn says a user's message below parent, and an answer to it.
func (g *generator) turn(parent int) int {
	return g.say(g.say(parent, tree.RoleUser), tree.RoleAssistant)
}

func (g *generator) say(parent int, role tree.Role) int {
	median := float64(userTokens)
	if role == tree.RoleAssistant {
		median = assistantTokens
	}
	size := median * math.Exp(g.rand.NormFloat64()*math.Log(spread))
	g.history = append(g.history, Node{Parent: parent, Role: role, Tokens: framing + 1 + int(size)})
	return len(g.history) - 1
}

// above is the message before the user's n-th last one, or before their first.
func (g *generator) above(head, n int) int {
	for at := head; at >= 0; at = g.history[at].Parent {
		if g.history[at].Role != tree.RoleUser {
			continue
		}
		if n--; n == 0 || g.history[at].Parent < 0 {
			return g.history[at].Parent
		}
	}
	return -1
}
