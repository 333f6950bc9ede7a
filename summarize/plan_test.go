package summarize

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// branch makes a view of "s10 u20 a30 c40:2 t5 t5 | u10!": roles, tokens, calls, pins, and a summary's cutoff.
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
		check.Need(t, err == nil, "%q: %v", word, err)
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
func planSettings() Settings {
	s := Defaults()
	s.MaxContextTokens, s.ReservedTokens = 1000, 0
	s.MinFoldMessages, s.MinFoldTokens, s.MinRecentMessages, s.KeepFirstUser = 2, 50, 2, KeepFirstNever
	return s
}

// The cases that five systems' tests assert, and the ways in which they broke.
func TestPlans(t *testing.T) {
	t.Parallel()
	text := string(check.Must(os.ReadFile("testdata/plans.txt"))(t))
	for of := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		name, lines, _ := strings.Cut(of, "\n")
		if strings.HasPrefix(name, "#") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, lines, _ := strings.Cut(lines, "\n")
			var summary int
			var d *Demand
			settings := json.RawMessage(nil)
			for ; !strings.HasPrefix(lines, "= "); _, lines, _ = strings.Cut(lines, "\n") {
				key, value, _ := strings.Cut(strings.SplitN(lines, "\n", 2)[0], " ")
				into := map[string]any{"summary": &summary, "settings": &settings, "demand": &d}[key]
				check.NoError(t, json.Unmarshal([]byte(value), into))
			}
			s := check.Must(planSettings().With(settings))(t)
			p, reason := MakePlan(branch(t, line, summary), s, d)
			got := describePlan(p, reason)
			check.That(t, "= "+got == lines, "%s\ngot  %s\nwant %s", line, got, lines)
		})
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
		check.That(t, errors.As(err, &e) && e.Kind == fault.Invalid && e.Code == "invalid_setting" && e.Field == field,
			"%s: %v, want an error of %q", overrides, err, field)
	}
	for _, fine := range []string{``, `{}`, `{"max_context_tokens": 8000, "reserved_tokens": 1000}`, `{"compaction": "off"}`, `{"every_n_messages": 25}`} {
		if _, err := Defaults().With([]byte(fine)); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// A summary is asked for in a third of what it folds, besides the one before, and of much in more.
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
		got := test.settings.Budget().TargetFor(test.folded, test.prior)
		check.That(t, got == test.want, "%s: %d of %d tokens, want %d", test.name, got, test.folded, test.want)
	}
}
