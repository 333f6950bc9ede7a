package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// told makes a history of a line such as "u10 a40 3:a40": a role's letter, the
// tokens, and before a colon the index of the parent where it isn't the message
// before. c10 calls one tool, and t is a tool.
func told(t *testing.T, line string) (h History) {
	t.Helper()
	roles := map[byte]tree.Role{'u': tree.RoleUser, 'a': tree.RoleAssistant, 'c': tree.RoleAssistant, 't': tree.RoleTool}
	for word := range strings.FieldsSeq(line) {
		n := Node{Parent: len(h) - 1}
		if parent, rest, ok := strings.Cut(word, ":"); ok {
			if _, err := fmt.Sscan(parent, &n.Parent); err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			word = rest
		}
		n.Role = roles[word[0]]
		if word[0] == 'c' {
			n.Calls = 1
		}
		if _, err := fmt.Sscan(word[1:], &n.Tokens); err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		h = append(h, n)
	}
	return h
}

// Each rule on trees small enough to follow by hand. The window has 1,000
// tokens, so a branch of more than 750 is compacted down to a tail of 200.
func TestReplay(t *testing.T) {
	t.Parallel()
	// Four turns of 190 tokens: the fourth answer, message 7, sets a compaction
	// off, and the tail is the fourth turn.
	const four = "u40 a150 u40 a150 u40 a150 u40 a150 "
	// Seven turns, of which the last three are in the tail: messages 8 to 13.
	const seven = "u50 a200 u20 a100 u20 a120 u20 a120 u10 a40 u10 a40 u10 a40 "
	for _, test := range []struct {
		name, line string
		want       map[string]string // by rule; "" stands for all that are not named
	}{
		{"nothing happens", four, map[string]string{"": "1 compaction"}},
		{"the last answer is regenerated", four + "6:a150", map[string]string{
			RuleTip:            "1 regeneration, 0 kept; 2 compactions",
			RuleLastUser:       "1 regeneration, 1 kept; 1 of 1 leaks; 1 compaction",
			RuleLastUserStrict: "1 regeneration, 1 kept; 0 of 1 leaks; 1 compaction",
			RuleCutoff:         "1 regeneration, 1 kept; 1 of 1 leaks; 1 compaction",
			"":                 "1 regeneration, 1 kept; 0 of 1 leaks; 1 compaction",
		}},
		{"the last user message is edited", four + "5:u40 a150", map[string]string{
			RuleTip:            "1 edit, 0 kept; 2 compactions",
			RuleLastUser:       "1 edit, 0 kept; 2 compactions",
			RuleLastUserStrict: "1 edit, 0 kept; 2 compactions",
			RuleCutoff:         "1 edit, 1 kept; 1 of 1 leaks; 1 compaction",
			"":                 "1 edit, 1 kept; 0 of 1 leaks; 1 compaction",
		}},
		{"what is folded is edited", four + "3:u40 a150", map[string]string{
			"": "1 folded, 0 kept; 1 compaction",
		}},
		{"the branch goes on", four + "u40 a150", map[string]string{
			"": "0 of 1 leaks; 1 compaction",
		}},
		{"the message before the last is edited", seven + "9:u10 a140", map[string]string{
			RuleTip:            "1 earlier, 0 kept; 2 compactions",
			RuleLastUser:       "1 earlier, 0 kept; 2 compactions",
			RuleLastUserStrict: "1 earlier, 0 kept; 2 compactions",
			RuleCutoff:         "1 earlier, 1 kept; 1 of 1 leaks; 1 compaction",
			"":                 "1 earlier, 1 kept; 0 of 1 leaks; 1 compaction", // two turns of slack
		}},
		{"the one before that", seven + "7:u10 a40", map[string]string{
			RuleOursNone: "1 earlier, 1 kept; 0 of 1 leaks; 1 compaction",
			RuleCutoff:   "1 earlier, 1 kept; 1 of 1 leaks; 1 compaction",
			"":           "1 earlier, 0 kept; 1 compaction", // under the trigger without it
		}},
		{"a run of tools is cut where no call is open", "u40 c200 t200 c200 t100 c100 t100", map[string]string{"": "1 compaction"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := told(t, test.line)
			for _, r := range rules {
				var got RuleResult
				newReplay(h, r, narrow(1000), &got).run()
				want, ok := test.want[r.name]
				if !ok {
					want = test.want[""]
				}
				if describe(got) != want {
					t.Errorf("%s:\ngot  %s\nwant %s", r.name, describe(got), want)
				}
			}
		})
	}
}

// describe says what isn't zero.
func describe(r RuleResult) string {
	var parts []string
	for _, s := range []struct {
		name string
		Survival
	}{{"regeneration", r.Regenerations}, {"edit", r.Edits}, {"earlier", r.Earlier}, {"folded", r.Folded}} {
		if s.Applied > 0 {
			parts = append(parts, fmt.Sprintf("%d %s, %d kept", s.Applied, s.name, s.Kept))
		}
	}
	if r.Summarized > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d leaks", r.Leaks, r.Summarized))
	}
	plural := "s"
	if r.Compactions == 1 {
		plural = ""
	}
	return strings.Join(append(parts, fmt.Sprintf("%d compaction%s", r.Compactions, plural)), "; ")
}

// What the command is for: ours keeps the summary in every fork of the last
// turn and leaks nothing, and of the rules that leak nothing and look ahead it
// spends the fewest tokens.
func TestForks(t *testing.T) {
	t.Parallel()
	cfg := ForksConfig{Chats: 8, Turns: 200, Seed: 7}
	report, err := Forks(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Forks(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(report, again) {
		t.Errorf("the same seed gives other figures:\n%+v\n%+v", report, again)
	}
	checkOurs(t, report.Sources[0])
	for _, r := range report.Sources[0].Rules {
		if r.Regenerations.Applied < 100 || r.Edits.Applied < 50 {
			t.Errorf("%s: too little happened: %+v", r.Rule, r)
		}
		if leaks := r.Rule == RuleLastUser || r.Rule == RuleCutoff; leaks != (r.Leaks > 0) {
			t.Errorf("%s leaks into %d contexts", r.Rule, r.Leaks)
		}
	}
	other, err := Forks(t.Context(), ForksConfig{Chats: 8, Turns: 200, Seed: 8})
	if err != nil || reflect.DeepEqual(report.Sources, other.Sources) {
		t.Errorf("another seed gives the same figures, %v", err)
	}
}

// checkOurs holds a source to what is promised of it.
func checkOurs(t *testing.T, s Source) {
	t.Helper()
	leakFree := math.MaxInt
	for _, r := range s.Rules {
		switch r.Rule {
		case RuleOurs, RuleOursNone:
			if r.Leaks != 0 || r.Regenerations.Kept != r.Regenerations.Applied || r.Edits.Kept != r.Edits.Applied {
				t.Errorf("%s, %s: leaks or loses a summary: %+v", s.Name, r.Rule, r)
			}
		case RuleTip, RuleLastUserStrict:
			if r.Leaks != 0 {
				t.Errorf("%s, %s: leaks, which it can't: %+v", s.Name, r.Rule, r)
			}
			leakFree = min(leakFree, r.Tokens())
		}
	}
	if ours := s.rule(RuleOurs); ours.Tokens() > leakFree {
		t.Errorf("%s: ours spends %d tokens, another rule that leaks nothing and looks ahead %d", s.Name, ours.Tokens(), leakFree)
	}
}

func (s Source) rule(name string) RuleResult {
	for _, r := range s.Rules {
		if r.Rule == name {
			return r
		}
	}
	panic(name)
}

// Whose summary applies, and where its tail begins, is for every message of a
// chat what the store says of the same tree.
func TestReplayLooksUpAsTheStore(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	h := generate(3, 80)
	r := newReplay(h, rules[3], narrow(2000), &RuleResult{})
	if r.rule.name != RuleOurs {
		t.Fatalf("rule 3 is %s", r.rule.name)
	}
	r.run()
	id := func(i int) uuid.UUID {
		if i < 0 {
			return uuid.Nil
		}
		return uuid.NewSHA1(c.ID, fmt.Append(nil, i))
	}
	for i, m := range h {
		raw := fmt.Appendf(nil, `{"role":%q,"content":"%d"}`, m.Role, i)
		if _, _, err := store.Append(t.Context(), c.ID, id(m.Parent), tree.NewMessage{ID: id(i), Body: json.RawMessage(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	summaries := map[uuid.UUID]int{uuid.Nil: -1}
	for i, s := range r.summaries {
		saved, err := store.AddSummary(t.Context(), c.ID, tree.NewSummary{
			AnchorID: id(s.hangs), Body: json.RawMessage(`{"role":"user","content":"summary"}`),
			Range: tree.SummaryRange{LastSummarizedID: id(s.cutoff), Model: "test"},
		})
		if err != nil {
			t.Fatal(err)
		}
		summaries[saved.ID] = i
	}
	if len(r.summaries) < 5 {
		t.Fatalf("only %d summaries", len(r.summaries))
	}
	for i := range h {
		v, err := store.View(t.Context(), c.ID, id(i), math.MaxInt64/2, tree.Skeleton())
		if err != nil {
			t.Fatal(err)
		}
		var found uuid.UUID
		if v.Summary != nil {
			found = v.Summary.ID
		}
		if want := r.view(i); summaries[found] != r.applicable(i) || len(v.Tail) != len(want.Tail) {
			t.Errorf("message %d: the store says summary %d and a tail of %d, the replay %d and %d", i, summaries[found], len(v.Tail), r.applicable(i), len(want.Tail))
		}
	}
}
