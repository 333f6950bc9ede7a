package torture

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/uuid"
)

// context is what a faultless server gives for a2: the system message, the
// summary of u1 and a1, of which u1 is kept, and the tail.
func (s *scene) context() (ctx contextAnswer) {
	ctx.HeadID = s.id["a2"]
	ctx.Complete = true
	ctx.Usage.Context, ctx.Usage.Available = 100, 1000
	ctx.Counts.Prefix, ctx.Counts.Folded, ctx.Counts.Kept, ctx.Counts.Tail = 1, 2, 1, 2
	text := naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}, seen: []mark{s.message("u2").mark}}.String() + "<coppice-kept>" + s.text["u1"]
	ctx.say("system", s.text["s"])
	ctx.say("user", text)
	ctx.say("user", s.text["u2"])
	ctx.say("assistant", s.text["a2"])
	if err := json.Unmarshal([]byte(`{"model": "`+summaryModel+`"}`), &ctx.Summary); err != nil {
		panic(err)
	}
	ctx.Summary.ID, ctx.Summary.Anchor, ctx.Summary.Cutoff, ctx.Summary.Kept = s.id["sum"], s.id["u2"], s.id["a1"], []uuid.UUID{s.id["u1"]}
	return ctx
}

func (ctx *contextAnswer) say(role, text string) {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	ctx.Messages = append(ctx.Messages, chatMessage{Role: role, Content: raw})
}

// repair puts in a result that the branch doesn't have.
func (ctx *contextAnswer) repair(caller uuid.UUID, id string, index int) {
	ctx.Repairs = append(ctx.Repairs, struct {
		MessageID  uuid.UUID `json:"message_id"`
		ToolCallID string    `json:"tool_call_id"`
		Index      int       `json:"index"`
	}{caller, id, index})
	result := chatMessage{Role: "tool", Content: encoded("no result"), ToolCallID: id}
	ctx.Messages = slices.Insert(ctx.Messages, index, result)
}

// put changes what a message says.
func (ctx *contextAnswer) put(i int, text string) {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	ctx.Messages[i].Content = raw
}

func TestCheckContext(t *testing.T) {
	t.Parallel()
	summary := func(s *scene, change func(*naming)) string {
		n := naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}, seen: []mark{s.message("u2").mark}}
		change(&n)
		return n.String() + "<coppice-kept>" + s.text["u1"]
	}
	for _, test := range []struct {
		name   string
		change func(s *scene, ctx *contextAnswer)
		want   string
	}{
		{"nothing is wrong", func(*scene, *contextAnswer) {}, ""},
		{"no summary", func(s *scene, ctx *contextAnswer) {
			ctx.Summary, ctx.Messages = nil, nil
			ctx.Counts.Folded, ctx.Counts.Kept, ctx.Counts.Tail = 0, 0, 4
			for _, name := range []string{"s", "u1", "a1", "u2", "a2"} {
				ctx.say(s.message(name).role, s.text[name])
			}
		}, ""},
		{"the oldest are left out, and it says so", func(s *scene, ctx *contextAnswer) {
			ctx.Summary, ctx.Messages, ctx.Complete, ctx.Omitted = nil, nil, false, 3
			ctx.Counts.Folded, ctx.Counts.Kept, ctx.Counts.Tail, ctx.Counts.Prefix = 0, 0, 1, 1
			ctx.say("system", s.text["s"])
			ctx.say("assistant", s.text["a2"])
		}, ""},
		{"the oldest are left out, and it says that all is there", func(s *scene, ctx *contextAnswer) {
			ctx.Summary, ctx.Messages, ctx.Omitted = nil, nil, 3
			ctx.Counts.Folded, ctx.Counts.Kept, ctx.Counts.Tail, ctx.Counts.Prefix = 0, 0, 1, 1
			ctx.say("system", s.text["s"])
			ctx.say("assistant", s.text["a2"])
		}, "cover"},
		{"over the window, and it says that all is well", func(_ *scene, ctx *contextAnswer) { ctx.Usage.Context = 1001 }, "cover"},
		{"a sibling's text in the summary", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(*naming) {})+s.text["a1'"])
		}, "leak"},
		{"the summary's writer saw a sibling", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(n *naming) { n.seen = append(n.seen, s.message("a1'").mark) }))
		}, "leak, leak"},
		{"the summary's writer saw what stands below its anchor", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(n *naming) { n.seen = append(n.seen, s.message("a2").mark) }))
		}, "leak"},
		{"a folded message that the writer wasn't given", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(n *naming) { n.folded = n.folded[:1] }))
		}, "cover"},
		{"the same, but an extract was merged", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(n *naming) { n.folded, n.gaps = n.folded[:1], true }))
		}, ""},
		{"the writer was told to fold what stands in the tail", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, summary(s, func(n *naming) { n.folded, n.seen = append(n.folded, n.seen...), nil }))
		}, "cover"},
		{"the summary hangs at a sibling", func(s *scene, ctx *contextAnswer) { ctx.Summary.Anchor = s.id["a1'"] }, "leak"},
		{"the cutoff is below the anchor", func(s *scene, ctx *contextAnswer) { ctx.Summary.Anchor, ctx.Summary.Cutoff = s.id["a1"], s.id["u2"] }, "leak"},
		{"the count of folded messages is wrong", func(s *scene, ctx *contextAnswer) { ctx.Counts.Folded = 1 }, "cover"},
		{"a message of the tail is missing", func(s *scene, ctx *contextAnswer) { ctx.Messages = ctx.Messages[:3] }, "cover"},
		{"the tail is out of order", func(s *scene, ctx *contextAnswer) {
			ctx.Messages[2], ctx.Messages[3] = ctx.Messages[3], ctx.Messages[2]
		}, "cover"},
		{"a message of the tail says something else", func(s *scene, ctx *contextAnswer) { ctx.put(3, s.text["a2"]+" and more") }, "cover"},
		{"the prefix is lost", func(s *scene, ctx *contextAnswer) {
			ctx.Counts.Prefix, ctx.Counts.Tail = 0, 3
			ctx.Messages = append(ctx.Messages[1:], ctx.Messages[0])
		}, "cover, cover"},
		{"a kept message isn't shown", func(s *scene, ctx *contextAnswer) {
			ctx.put(1, naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}}.String())
		}, "cover"},
		{"a pinned message is kept", func(s *scene, _ *contextAnswer) { s.message("u1").pinned = true }, ""},
		{"a folded message that is pinned isn't kept", func(s *scene, _ *contextAnswer) { s.message("a1").pinned = true }, "pin"},
		{"the older one of two pinned messages isn't kept, which there is no room for", func(s *scene, ctx *contextAnswer) {
			s.message("u1").pinned, s.message("a1").pinned = true, true
			s.message("u1").tokens = 300
			ctx.Summary.Kept = []uuid.UUID{s.id["a1"]}
			ctx.put(1, naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}}.String()+"<coppice-kept>"+s.text["a1"])
		}, ""},
		{"the older one of two pinned messages isn't kept, and the size of the newest isn't known", func(s *scene, ctx *contextAnswer) {
			s.message("u1").pinned, s.message("a1").pinned = true, true
			s.message("a1").tokens = 0
			ctx.Summary.Kept = []uuid.UUID{s.id["a1"]}
			ctx.put(1, naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}}.String()+"<coppice-kept>"+s.text["a1"])
		}, ""},
		{"the newest pinned message isn't kept", func(s *scene, ctx *contextAnswer) {
			s.message("u1").pinned, s.message("a1").pinned = true, true
			s.message("u1").tokens = 300
		}, "pin"},
		{"a pinned message is kept, but not word for word", func(s *scene, ctx *contextAnswer) {
			s.message("u1").pinned = true
			ctx.put(1, naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}}.String()+"<coppice-kept>"+s.text["u1"][:15])
		}, "pin"},
		{"a pinned message stands in the summary's own text only", func(s *scene, ctx *contextAnswer) {
			s.message("u1").pinned = true
			ctx.put(1, naming{folded: []mark{s.message("u1").mark, s.message("a1").mark}}.String()+s.text["u1"])
		}, "pin"},
		{"a merged summary, whose messages its writer wasn't given", func(s *scene, ctx *contextAnswer) {
			ctx.Summary.Prior = uuid.New()
			ctx.put(1, summary(s, func(n *naming) { n.folded = n.folded[1:] }))
		}, "cover"},
		{"a result in the tail whose call is folded", func(s *scene, ctx *contextAnswer) {
			s.message("a1").calls = []call{{ID: "x"}}
			s.message("u2").role, s.message("u2").answers = "tool", "x"
			ctx.Messages[2].Role, ctx.Messages[2].ToolCallID = "tool", "x"
		}, "invalid"},
		{"a call without its result", func(s *scene, ctx *contextAnswer) {
			s.message("u2").role, s.message("u2").calls = "assistant", []call{{ID: "x"}}
			ctx.Messages[2].Role, ctx.Messages[2].ToolCalls = "assistant", []chatCall{{ID: "x", Type: "function"}}
		}, "invalid"},
		{"a call without its result, for which the context makes one up", func(s *scene, ctx *contextAnswer) {
			s.message("u2").role, s.message("u2").calls = "assistant", []call{{ID: "x"}}
			ctx.Messages[2].Role, ctx.Messages[2].ToolCalls = "assistant", []chatCall{{ID: "x", Type: "function"}}
			ctx.repair(s.id["u2"], "x", 3)
		}, ""},
		{"a result made up for a call that nobody made", func(s *scene, ctx *contextAnswer) {
			s.message("u2").role, s.message("u2").calls = "assistant", []call{{ID: "x"}}
			ctx.Messages[2].Role, ctx.Messages[2].ToolCalls = "assistant", []chatCall{{ID: "x", Type: "function"}}
			ctx.repair(s.id["a1"], "x", 3)
		}, "invalid"},
		{"a call of the tail is lost", func(s *scene, _ *contextAnswer) { s.message("a2").calls = []call{{ID: "x"}} }, "cover"},
		{"a kept message isn't folded", func(s *scene, ctx *contextAnswer) { ctx.Summary.Kept = []uuid.UUID{s.id["u2"]} }, "cover"},
		{"the context of another head", func(s *scene, ctx *contextAnswer) { ctx.HeadID = s.id["u2"] }, "cover"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			ctx := s.context()
			test.change(s, &ctx)
			found, _ := checkContext(s.c.path(s.id["a2"]), ctx)
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

// What a context had to show is counted.
func TestContextSeen(t *testing.T) {
	t.Parallel()
	s := newScene()
	ctx := s.context()
	ctx.Summary.Prior = uuid.New()
	s.message("u1").pinned = true
	found, seen := checkContext(s.c.path(s.id["a2"]), ctx)
	if len(found) > 0 || seen != (contextSeen{summarized: true, merged: true, pins: 1}) {
		t.Errorf("found %v, seen %+v", found, seen)
	}
}

// A prompt ends in the message that is answered, or in a summary that folds it.
func TestHeadOf(t *testing.T) {
	t.Parallel()
	s := newScene()
	u1, a1 := s.message("u1").mark, s.message("a1").mark
	named := naming{folded: []mark{u1, a1}}.String()
	summary := "<coppice-summary>\n" + named
	for text, want := range map[string]mark{
		s.text["u1"]: u1, "nothing": noMark, summary + s.text["u1"]: a1, s.text["u1"] + summary: u1,
		"<coppice-summary>\nAn extract: " + named: noMark, // which quotes a summary
	} {
		if got := headOf(text); got != want {
			t.Errorf("the head of %q is %v, want %v", text, got, want)
		}
	}
}
