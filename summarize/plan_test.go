package summarize

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// branch makes a view out of a line such as "s10 u20 a30 c40:2 t5 t5 u10": a
// role's first letter (c: an assistant that calls tools, with their number),
// the tokens, and ! for pinned. | ends the folded part of an earlier summary,
// whose message has summaryTokens.
func branch(t testing.TB, line string, summaryTokens int) tree.View {
	t.Helper()
	v := tree.View{ConversationID: uuid.New()}
	depth := 0
	for _, word := range strings.Fields(line) {
		if word == "|" {
			v.Folded = len(v.Tail)
			v.Summary = &tree.Summary{ID: uuid.New(), Tokens: summaryTokens, AnchorID: v.Tail[len(v.Tail)-1].ID}
			for _, m := range v.Tail {
				if m.Pinned {
					v.Kept = append(v.Kept, m)
				}
			}
			v.Tail = nil
			continue
		}
		m := tree.PathMessage{Message: tree.Message{ID: nodeID(depth), Depth: depth}}
		if strings.HasSuffix(word, "!") {
			m.Pinned, word = true, strings.TrimSuffix(word, "!")
		}
		roles := map[byte]tree.Role{'s': tree.RoleSystem, 'd': tree.RoleDeveloper, 'u': tree.RoleUser, 'a': tree.RoleAssistant, 'c': tree.RoleAssistant, 't': tree.RoleTool}
		m.Role = roles[word[0]]
		var err error
		if word[0] == 'c' {
			calls := 0
			_, err = fmt.Sscanf(word[1:], "%d:%d", &m.Tokens, &calls)
			m.Calls = make([]string, calls)
		} else {
			_, err = fmt.Sscanf(word[1:], "%d", &m.Tokens)
		}
		if err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		depth++
		v.HeadID = m.ID
		if (m.Role == tree.RoleSystem || m.Role == tree.RoleDeveloper) && len(v.Tail) == 0 && v.Summary == nil {
			v.Prefix = append(v.Prefix, m)
			continue
		}
		v.Tail = append(v.Tail, m)
	}
	return v
}

// nodeID is the id of the message at a depth of these tests' branches.
func nodeID(depth int) uuid.UUID {
	return uuid.NewSHA1(uuid.Nil, []byte{byte(depth), byte(depth >> 8)})
}

func depthOf(id uuid.UUID) int {
	for d := range 1 << 14 {
		if nodeID(d) == id {
			return d
		}
	}
	return -1
}

// A window of 1000 tokens: trigger 750, tail 200, kept user messages 50.
func planSettings(change func(*Settings)) Settings {
	s := Defaults()
	s.MaxContextTokens, s.ReservedTokens = 1000, 0
	s.MinFoldMessages, s.MinFoldTokens, s.MinRecentMessages, s.KeepFirstUser = 2, 50, 2, KeepFirstNever
	if change != nil {
		change(&s)
	}
	return s
}

// The cases that five systems' tests assert, and the ways in which they broke.
// Depths are those of the messages in the line, from 0.
func TestOnyx(t *testing.T)        { t.Parallel(); planCases(t, "Onyx: ") }
func TestStagewise(t *testing.T)   { t.Parallel(); planCases(t, "stagewise: ") }
func TestPilo(t *testing.T)        { t.Parallel(); planCases(t, "Pilo: ") }
func TestMyCoder(t *testing.T)     { t.Parallel(); planCases(t, "MyCoder: ") }
func TestNimbleBrain(t *testing.T) { t.Parallel(); planCases(t, "NimbleBrain: ") }
func TestKept(t *testing.T)        { t.Parallel(); planCases(t, "kept: ") }
func TestDoesNotFit(t *testing.T)  { t.Parallel(); planCases(t, "doesn't fit: ") }
func TestPrefix(t *testing.T)      { t.Parallel(); planCases(t, "prefix: ") }

type planCase struct {
	name    string // the system, and what it asserts
	line    string
	summary int // tokens of the earlier summary's message
	change  func(*Settings)
	demand  *Demand
	want    string // "fold 1-4, anchor 6, keep 2 3", or the reason why not
}

func nothing(r Reason) string { return string(r) }

var allPlanCases = []planCase{
	{name: "Onyx: below the threshold", line: "u100 a200 u100 a200", want: nothing(ReasonBelowTrigger)},
	{name: "Onyx: exactly at the threshold", line: "u250 a200 u100 a200", want: nothing(ReasonBelowTrigger)},
	{name: "Onyx: over the threshold", line: "u50 a301 u50 a150 u100 a100", want: "fold 0-3, anchor 3, keep 2"},
	{name: "Onyx: empty history", line: "s800", want: nothing(ReasonBelowTrigger)},
	{name: "Onyx: what is folded doesn't count", line: "u900 a900 | u100 a100 u100 a100", summary: 100, want: nothing(ReasonBelowTrigger)},
	{name: "Onyx: only messages after the old cutoff are folded", line: "u900 a900 | u40 a300 u100 a100 u60 a60", summary: 100, want: "fold 2-5, anchor 5, keep"},
	{name: "Onyx: the tail starts at a user turn", line: "u40 a400 u40 a100 u80 a100 u10 a10", want: "fold 0-3, anchor 3, keep 2"},
	{name: "Onyx: cutoff right before a user message", line: "u40 a600 u100 a100", want: "fold 0-1, anchor 1, keep 0"},
	{name: "Onyx: a tail with no user message", line: "u40 a700 a100 a100", want: "fold 0-1, anchor 1, keep 0"},
	{name: "Onyx: no user message at all", line: "a300 a300 a200 a100", want: "fold 0-1, anchor 1, keep"},
	{name: "Onyx: tool calls' tokens count", line: "u40 c400:1 t400 u50 a10", want: "fold 0-2, anchor 2, keep 0"},
	{name: "Onyx: the anchor lies above the last turns", line: "u40 a500 u30 a30 u30 a30 u30 a60 u10 a10", want: "fold 0-1, anchor 5, keep 0",
		change: func(s *Settings) { s.KeepRatio = 0.3 }},
	{name: "Onyx: slack of one turn", line: "u40 a500 u30 a30 u30 a30 u30 a60 u10 a10", want: "fold 0-1, anchor 7, keep 0",
		change: func(s *Settings) { s.KeepRatio, s.AnchorSlackTurns = 0.3, 1 }},
	{name: "Onyx: no look-ahead, every branch through the cutoff shares it", line: "u40 a500 u30 a30 u30 a30 u30 a60 u10 a10", want: "fold 0-1, anchor 1, keep 0",
		change: func(s *Settings) { s.KeepRatio, s.LookAhead = 0.3, LookAheadNone }},
	{name: "Onyx: the prefix is never folded", line: "s50 d50 u40 a500 u100 a100", want: "fold 2-3, anchor 3, keep 2"},

	{name: "stagewise: the hard cap triggers before the ratio", line: "u10 a100 u10 a30 u10 a10", want: "fold 0-3, anchor 3, keep 0 2",
		change: func(s *Settings) { s.TriggerCapTokens, s.KeepCapTokens, s.SummaryTargetTokens = 150, 30, 20 }},
	{name: "stagewise: a minimum of recent messages", line: "u30 a300 u30 a300 u200 a200 u200 a200", want: "fold 0-3, anchor 3, keep 2",
		change: func(s *Settings) { s.MinRecentMessages = 4 }},
	{name: "stagewise: too few messages", line: "u700 u100 a100", want: nothing(ReasonTooFew)},
	{name: "stagewise: too few tokens", line: "u10 a10 | u10 a20 u100 a100", summary: 700, want: nothing(ReasonTooSmall)},

	{name: "Pilo: every n messages", line: "u10 a10 u10 a10 u10 a10 u10 a10 u10 a10 u10 a10", want: "fold 0-5, anchor 7, keep 0 2 4",
		change: func(s *Settings) { s.EveryNMessages, s.MinFoldTokens, s.KeepUserCapTokens = 12, 0, 64 }},
	{name: "Pilo: below n messages", line: "u10 a10 u10 a10", want: nothing(ReasonBelowTrigger),
		change: func(s *Settings) { s.EveryNMessages = 12 }},

	{name: "MyCoder: asked for, with a number of messages to keep", line: "u10 a60 u10 a10 u10 a10 u10 a10", demand: &Demand{KeepRecentMessages: 3}, want: "fold 0-3, anchor 3, keep 0 2"},
	{name: "MyCoder: asked for, and too little to fold", line: "u10 a10", demand: &Demand{KeepRecentMessages: 10}, want: nothing(ReasonTailKept)},
	{name: "MyCoder: asked for below the trigger", line: "u10 a90 u10 a10 u10 a10", demand: &Demand{}, want: "fold 0-1, anchor 1, keep 0"},
	{name: "MyCoder: asked for up to the head", line: "u10 a60 u10 c10:1 t10", demand: &Demand{All: true}, want: "fold 0-4, anchor 4, keep 0 2"},
	{name: "MyCoder: asked for up to the head, whose calls are open", line: "u10 a60 u10 c10:2 t10", demand: &Demand{All: true}, want: nothing(ReasonNoCut)},
	{name: "MyCoder: asked for while it is off", line: "u10 a90 u10 a10 u10 a10", demand: &Demand{}, want: nothing(ReasonOff),
		change: func(s *Settings) { s.Compaction = ModeOff }},
	{name: "MyCoder: manual, and nobody asked", line: "u900 a90 u10 a10 u10 a10", want: nothing(ReasonManual),
		change: func(s *Settings) { s.Compaction = ModeManual }},

	{name: "NimbleBrain: one turn larger than the tail is cut between calls", line: "u40 c100:1 t200 c100:1 t200 c100:1 t100 c20:1 t20", want: "fold 0-4, anchor 4, keep 0"},
	{name: "NimbleBrain: inside a run the anchor is as deep as some messages before the end allow", line: "u40 c100:1 t200 c100:1 t200 c20:1 t20 c20:1 t20 c20:1 t20 c20:1 t20", want: "fold 0-4, anchor 8, keep 0"},
	{name: "NimbleBrain: the anchor is as deep as the next turn", line: "u40 c100:1 t200 c100:1 t200 c40:1 t20 a20 u20 a20", want: "fold 0-4, anchor 7, keep 0"},
	{name: "NimbleBrain: no cut between a call and its results", line: "u40 a10 c100:3 t300 t300 t10 a10", want: "fold 0-1, anchor 1, keep 0"},
	{name: "NimbleBrain: calls that are open leave no point to cut", line: "c400:3 t300 t100", want: nothing(ReasonNoCut),
		change: func(s *Settings) { s.MinRecentMessages = 1 }},
	{name: "NimbleBrain: calls that nobody answered don't stop a cut", line: "u40 c400:2 t100 u100 a100 u50 a100", want: "fold 0-4, anchor 4, keep"},
	{name: "NimbleBrain: a last message larger than the tail is kept whole", line: "u40 a300 u40 a900", want: "fold 0-1, anchor 1, keep 0"},

	{name: "doesn't fit: too little to fold is folded all the same", line: "u20 a20 | u20 a900 u30 a60", summary: 100, want: "fold 2-3, anchor 3, keep 2",
		change: func(s *Settings) { s.MinFoldMessages, s.MinRecentMessages = 4, 4 }},
	{name: "doesn't fit: but it stays where it fits", line: "u20 a20 | u20 a600 u30 a60", summary: 100, want: nothing(ReasonTailKept),
		change: func(s *Settings) { s.MinFoldMessages, s.MinRecentMessages = 4, 4 }},
	{name: "doesn't fit: it goes on past a result that doesn't", line: "u20 a20 | u20 a100 u10 c10:1 t2000 u10", summary: 100, want: "fold 2-6, anchor 6, keep 2 4",
		change: func(s *Settings) { s.KeepUserCapTokens = 64; s.KeepUserRatio = 0.064 }},
	{name: "doesn't fit: the cut is the nearest in tokens", line: "u40 a300 c100:1 t600 c10:1 t10 a5", want: "fold 0-3, anchor 3, keep 0",
		change: func(s *Settings) { s.MinRecentMessages = 1 }},
	{name: "prefix: its share of the window isn't the tail's", line: "s600 u50 a150 u50 a40", want: nothing(ReasonBelowTrigger)},
	{name: "prefix: over the trigger of what it leaves", line: "s600 u50 a170 u30 a80", want: "fold 1-2, anchor 2, keep"},
	{name: "prefix: it fills the window", line: "s980 u50 a150 u30 a80", want: nothing(ReasonPrefix)},

	{name: "kept: pinned messages stay, the user's newest within the budget", line: "u40! a80! u30 a320 u20 a100 u100 a100", want: "fold 0-5, anchor 5, keep 0 1 2 4"},
	{name: "kept: a pinned message over their budget is cut", line: "u40! a300! u30 a100 u20 a100 u100 a100", want: "fold 0-5, anchor 5, keep 0 1/107 2 4"},
	{name: "kept: large pinned messages share their budget, and small ones stay whole", line: "u900! a10! u900! a100 u20 a100 u100 a100", want: "fold 0-5, anchor 5, keep 0/83 1 2/83 4",
		change: func(s *Settings) { s.KeepRatio = 0.1 }},
	{name: "kept: of more pinned messages than there is room for, the oldest don't stay", line: "u900! a10! u900! a300! u20 a100 u100 a100", want: "fold 0-5, anchor 5, keep 2/64 3/64 4"},
	{name: "kept: kept messages of the summary before stay candidates", line: "u40! a300 | u30 a300 u40 a100 u100 a100", summary: 200, want: "fold 2-5, anchor 5, keep 0 4",
		change: func(s *Settings) { s.KeepUserCapTokens = 64; s.KeepUserRatio = 0.064 }},
	{name: "kept: the task of an agent stays, where tools are called in its turn", line: "u40 c100:1 t200 a10 u100 a100 u100 a250 u60 a60", want: "fold 0-7, anchor 7, keep 0",
		change: func(s *Settings) { s.KeepFirstUser, s.KeepUserRatio = KeepFirstAuto, 0 }},
	{name: "kept: the first task goes when another one is given", line: "u40 c100:1 t200 a10 u100 c50:1 t50 a10 u100 a250 u60 a60", want: "fold 0-9, anchor 9, keep",
		change: func(s *Settings) { s.KeepFirstUser, s.KeepUserRatio = KeepFirstAuto, 0 }},
	{name: "kept: a first message without calls doesn't stay by itself", line: "u40 a310 u100 a100 u100 a250 u60 a60", want: "fold 0-5, anchor 5, keep",
		change: func(s *Settings) { s.KeepFirstUser, s.KeepUserRatio = KeepFirstAuto, 0 }},
	{name: "kept: calls of a later turn don't matter", line: "u40 a10 u100 c100:1 t200 a100 u100 a250 u60 a60", want: "fold 0-7, anchor 7, keep",
		change: func(s *Settings) { s.KeepFirstUser, s.KeepUserRatio = KeepFirstAuto, 0 }},
	{name: "kept: the first user message always stays, also after a greeting", line: "s10 a10 u40 a300 u100 a100 u100 a250 u60 a60", want: "fold 1-7, anchor 7, keep 2",
		change: func(s *Settings) { s.KeepFirstUser, s.KeepUserRatio = KeepFirstAlways, 0 }},
	{name: "kept: a user message over the budget is cut", line: "u400 a300 u20 a10 u100 a100", want: "fold 0-3, anchor 3, keep 0/80 2",
		change: func(s *Settings) { s.KeepUserRatio = 0.1 }},
}

// planCases runs the cases whose names begin so.
func planCases(t *testing.T, of string) {
	t.Helper()
	ran := 0
	for _, test := range allPlanCases {
		name, ok := strings.CutPrefix(test.name, of)
		if !ok {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := planSettings(test.change)
			check.NoError(t, s.Validate())
			v := branch(t, test.line, test.summary)
			p, reason := MakePlan(v, s, test.demand)
			if got := describePlan(p, reason); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.line, got, test.want)
			}
		})
	}
	if ran == 0 {
		t.Errorf("no case is named after %q", of)
	}
}

func describePlan(p *Plan, reason Reason) string {
	if p == nil {
		return string(reason)
	}
	var kept strings.Builder
	for _, k := range p.Kept {
		fmt.Fprintf(&kept, " %d", depthOf(k.ID))
		if k.Limit > 0 {
			fmt.Fprintf(&kept, "/%d", k.Limit)
		}
	}
	return fmt.Sprintf("fold %d-%d, anchor %d, keep%s", p.Fold[0].Depth, depthOf(p.CutoffID), depthOf(p.AnchorID), &kept)
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	for overrides, setting := range map[string]string{
		`{"max_context_tokens": 0}`:                      "max_context_tokens",
		`{"reserved_tokens": 128000}`:                    "reserved_tokens",
		`{"trigger_ratio": 1.5}`:                         "trigger_ratio",
		`{"trigger_ratio": 0}`:                           "trigger_ratio",
		`{"keep_ratio": 0.8}`:                            "keep_ratio",
		`{"keep_ratio": 0.7, "keep_cap_tokens": 100000}`: "keep_ratio", // with the summary over the trigger
		`{"trigger_cap_tokens": 4000}`:                   "keep_ratio",
		`{"anchor_slack_turns": 0}`:                      "anchor_slack_turns",
		`{"look_ahead": "all"}`:                          "look_ahead",
		`{"compaction": "sometimes"}`:                    "compaction",
		`{"min_recent_messages": 0}`:                     "min_recent_messages",
		`{"every_n_messages": 5}`:                        "every_n_messages",
		`{"summary_target_tokens": 0}`:                   "summary_target_tokens",
		`{"keep_user_ratio": 2}`:                         "keep_user_ratio",
		`{"unknown": 1}`:                                 "unknown",
		`{"trigger_ratio": "high"}`:                      "trigger_ratio",
		`{"": 1}`:                                        "",
		`{"usual": {}}`:                                  "usual", // a field, and no setting
		`[]`:                                             "",
	} {
		_, err := Defaults().With([]byte(overrides))
		field := strings.TrimSuffix("settings."+setting, ".")
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Invalid || e.Code != "invalid_setting" || e.Field != field {
			t.Errorf("%s: %v, want an error of %q", overrides, err, field)
		}
	}
	for _, fine := range []string{``, `{}`, `{"max_context_tokens": 8000, "reserved_tokens": 1000}`, `{"compaction": "off"}`, `{"every_n_messages": 25}`} {
		if _, err := Defaults().With([]byte(fine)); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// A summary is asked for in a third of what it folds, besides the one before, and of
// much in more than the setting says.
func TestTarget(t *testing.T) {
	t.Parallel()
	few := Defaults()
	few.KeepRatio, few.KeepCapTokens = 0.6, 70_000 // leaves 7,200 tokens
	for _, test := range []struct {
		name     string
		settings Settings
		folded   int
		prior    int
		want     int
	}{
		{"too little for a third to say anything", Defaults(), 300, 0, 200},
		{"40 messages of 40 tokens", Defaults(), 1580, 0, 526},
		{"as the setting says", Defaults(), 20_000, 0, 4000},
		{"it grows", Defaults(), 62_000, 0, 6200},
		{"up to twice the setting", Defaults(), 600_000, 0, 8000},
		{"but not where the tail leaves no room", few, 62_000, 0, 5800},
		{"a merge has room for what is new", Defaults(), 20_000, 4000, 6000},
		{"and a merge with little forgets nothing", Defaults(), 600, 3000, 3200},
	} {
		if got := test.settings.Budget().TargetFor(test.folded, test.prior); got != test.want {
			t.Errorf("%s: %d of %d tokens, want %d", test.name, got, test.folded, test.want)
		}
	}
}
