package digest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"github.com/coppice-chat/coppice/internal/check"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// digestLines takes a digest apart: its lines by heading, each with its speaker.
// The first line is under "".
func digestLines(digest string) map[string][]string {
	lines := map[string][]string{}
	heading, speaker := "", ""
	for line := range strings.SplitSeq(digest, "\n") {
		if strings.HasPrefix(line, "## ") {
			heading = strings.TrimPrefix(line, "## ")
		} else if goesOn, ok := strings.CutPrefix(line, "  "); ok {
			lines[heading] = append(lines[heading], speaker+goesOn)
		} else if line != "" {
			line = strings.TrimPrefix(line, "- ")
			speaker = cmp.Or(priorSpeaker.FindString(line), priorName.FindString(line))
			lines[heading] = append(lines[heading], line)
		}
	}
	return lines
}

// checkDigest fails where a digest isn't what every digest must be.
func checkDigest(t interface {
	Helper()
	Errorf(string, ...any)
}, in prompt.Input, got string, counter tokens.Counter) {
	t.Helper()
	first, _, _ := strings.Cut(got, "\n")
	if limit := max(in.TargetTokens, 32, counter.Count(first)); counter.Count(got) > limit {
		t.Errorf("%d tokens, and %d are the most: %q", counter.Count(got), limit, got)
	}
	if !utf8.ValidString(got) {
		t.Errorf("no UTF-8: %q", got)
	}
	if hasText(in) {
		if clean, err := prompt.Clean(got); err != nil || clean != got {
			t.Errorf("prompt.Clean(%q) = %q, %v", got, clean, err)
		}
	} else if got != "" {
		t.Errorf("of nothing it makes %q", got)
	}
	if again := extract(in, counter); again != got {
		t.Errorf("the second time it is\n%q, not\n%q", again, got)
	}
}

func hasText(in prompt.Input) bool {
	texts := []string{in.Prior}
	for _, m := range in.Fold {
		said := prompt.Read(m)
		texts = append(texts, said.Text, said.Refusal)
		if len(said.Calls) > 0 {
			return true
		}
	}
	return strings.TrimSpace(prompt.Line(strings.Join(texts, " "))) != ""
}

func TestDigestChoosesFirst(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	var fold []tree.Message
	for i := range 40 {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("Tell me a little more about the weather there, part %s.", strings.Repeat("so ", i%7))),
			prompttest.AssistantSays(strings.Repeat("The weather is mild and the wind blows gently over the hills. ", 3)+fmt.Sprintf("That was part %c of it.", 'a'+i%26)))
	}
	must := []string{
		"I prefer metric units.", "The server is at https://shop.example.com/admin?id=7.", "The report is /srv/reports/2026/q1.pdf.",
		"Ticket ABC-1234 belongs to Grace.", "We decided to postpone the launch to 14 May.",
	}
	for i, text := range must {
		fold[10*i+4] = prompttest.UserSays(text)
	}
	got := extract(prompt.Input{Fold: fold, TargetTokens: 300}, counter)
	for _, text := range must {
		check.That(t, strings.Contains(got, text), "%q is lost:\n%s", text, got)
	}
}

func TestDigestInstructionsAndLookAhead(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	var fold []tree.Message
	for i := range 60 {
		fold = append(fold, prompttest.AssistantSays(fmt.Sprintf("Chapter %d of handbook H-%d is about topic %d, tables T-%d to T-%d.", i, i*7, i*i, i*11, i*13)))
	}
	fold[30] = prompttest.AssistantSays("The invoices lie in the blue cupboard upstairs.")
	fold[31] = prompttest.AssistantSays("Room B-17 is reserved.")
	in := prompt.Input{Fold: fold, TargetTokens: 200}
	if got := extract(in, counter); strings.Contains(got, "cupboard") {
		t.Fatalf("the sentence stands there anyway:\n%s", got)
	}
	in.Instructions = "Keep what is said about invoices."
	if got := extract(in, counter); !strings.Contains(got, "The invoices lie in the blue cupboard upstairs.") {
		t.Errorf("what the instructions ask for is lost:\n%s", got)
	}
	in.LookAhead = []tree.Message{prompttest.UserSays("Is B-17 large enough for xylophones?")}
	if got := extract(in, counter); !strings.Contains(got, "Room B-17 is reserved.") || strings.Contains(got, "xylophones") {
		t.Errorf("what the look-ahead is about is lost, or its text got in:\n%s", got)
	}
}

func TestDigestOfLittle(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, c := range []struct {
		name string
		fold []tree.Message
		want string // in the digest
	}{
		{"one word", []tree.Message{prompttest.UserSays("hi")}, "user: hi"},
		{"one character", []tree.Message{prompttest.UserSays("树")}, "user: 树"},
		{"an emoji", []tree.Message{prompttest.UserSays("👍🏽")}, "user: 👍🏽"},
		{"only a call", []tree.Message{prompttest.AssistantCalls("search", `{"q":"hazel"}`)}, `assistant: called search {"q":"hazel"}`},
		{"only a refusal", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil, "refusal": "I can't do that."})}, "I can't do that."},
		{"a name", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"name": "Ada", "content": "I like hazel."})}, "- Ada: I like hazel."},
		{"a name beside an assistant", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"name": "Ada", "content": "I like hazel."}), prompttest.AssistantSays("Noted.")}, "- user Ada: I like hazel."},
		{"a name that is a role", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"name": "assistant", "content": "I like hazel."})}, "- user assistant: I like hazel."},
		{"a mark for joining at the end", []tree.Message{prompttest.UserSays("Ano, ****\u200d")}, "user: Ano,"},
		{"a tag of ours", []tree.Message{prompttest.UserSays("What does </coppice-summary> mean in line 7?")}, "user: What does (/coppice-summary> mean in line 7?"},
	} {
		in := prompt.Input{Fold: c.fold, TargetTokens: 4000}
		got := extract(in, counter)
		checkDigest(t, in, got, counter)
		check.That(t, strings.Contains(got, c.want), "%s: %q lacks %q", c.name, got, c.want)
	}
	for _, in := range []prompt.Input{{}, {Fold: []tree.Message{prompttest.UserSays("\n\u200b ")}}, {Prior: " \n"}, {LookAhead: []tree.Message{prompttest.UserSays("Only ahead.")}}} {
		check.Equal(t, "of nothing it makes", extract(in, counter), "")
	}
}

// TestDigestProperties tries everything on everything.
func TestDigestProperties(t *testing.T) {
	t.Parallel()
	counters := []tokens.Counter{tokens.O200k(), prompttest.Quarters{}, ones{}}
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.Custom(func(t *rapid.T) tree.Message {
			text := strings.Repeat(prompttest.Hostile().Draw(t, "text")+" ", rapid.IntRange(0, 8).Draw(t, "times"))
			switch rapid.IntRange(0, 3).Draw(t, "role") {
			case 0:
				return prompttest.AssistantSays(text)
			case 1:
				return prompttest.AssistantCalls("f", text)
			case 2:
				return prompttest.ToolSays("f", text)
			}
			return prompttest.UserSays(text)
		})
		in := prompt.Input{
			Nonce: prompttest.Nonce, Prior: prompttest.Hostile().Draw(t, "prior"), Instructions: prompttest.Hostile().Draw(t, "instructions"),
			Fold: rapid.SliceOfN(message, 0, 10).Draw(t, "fold"), LookAhead: rapid.SliceOfN(message, 0, 3).Draw(t, "ahead"),
			TargetTokens: rapid.IntRange(-5, 400).Draw(t, "target"),
		}
		counter := rapid.SampledFrom(counters).Draw(t, "counter")
		for range rapid.IntRange(1, 3).Draw(t, "merges") {
			got := extract(in, counter)
			checkDigest(t, in, got, counter)
			in.Prior, in.PriorTokens = got, counter.Count(got)
		}
	})
}

// bareWord is a word without the marks around it.
func bareWord(word string) string { return strings.Trim(word, `.,"…`) }

// ones takes every character for a token.
type ones struct{}

func (ones) Count(text string) int { return utf8.RuneCountInString(text) }

// No word of a digest is its own but those of its first line and headings, the
// labels, and the marks where something was cut. Its index stays within its share.
func TestDigestIsExtractive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,9}|[A-Z][a-z]{2,6}|[0-9]{1,4}|not|no,|always|fixed|"[a-z]{2,5} [a-z]{2,5}"|[a-z]{2,5}\.(go|com)/[a-z]{1,3}`)
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(word, 1, 60).Draw(t, "words"), " ") + "."
		})
		known := map[string]bool{"": true}
		in := prompt.Input{TargetTokens: rapid.IntRange(40, 800).Draw(t, "target")}
		for range rapid.IntRange(1, 20).Draw(t, "messages") {
			said := text.Draw(t, "text")
			for w := range strings.FieldsSeq(said) {
				known[bareWord(w)] = true
			}
			in.Fold = append(in.Fold, prompttest.UserSays(said))
		}
		in.LookAhead = []tree.Message{prompttest.UserSays("Xylophones Xylophones " + text.Draw(t, "ahead"))} // none of it may get in
		for range 3 {
			got := extract(in, ones{})
			index := indexOf(got)
			if n := len(index); n > in.TargetTokens*indexShare/100+len(indexHeading)+len(indexLine) {
				t.Fatalf("the index has %d characters of %d", n, in.TargetTokens)
			}
			for _, line := range slices.Concat(digestLines(got)["Decisions and preferences"], digestLines(got)["Facts"], []string{index}) {
				for w := range strings.FieldsSeq(strings.TrimPrefix(line, "user: ")) {
					check.Need(t, known[bareWord(w)], "%q is nobody's word in %q", w, line)
				}
			}
			in.Prior, in.PriorTokens, in.Fold = got, len(got), nil
		}
	})
}

// None of these takes long. A quadratic way through any of them would.
func TestDigestMonsters(t *testing.T) {
	t.Parallel()
	for name, text := range prompttest.Monsters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ToValidUTF8(text[:min(len(text), 1<<17)], "\uFFFD")
			counter := prompttest.Quarters{}
			in := prompt.Input{Nonce: prompttest.Nonce, Fold: []tree.Message{prompttest.UserSays(text), prompttest.AssistantCalls("f", text), prompttest.ToolSays("f", text)}, TargetTokens: 400, Instructions: text, Prior: text}
			checkDigest(t, in, extract(in, counter), counter)
			in.Prior = ""
			if _, _, err := prompt.Next(in, 1<<30, counter); err != nil {
				t.Error(err)
			}
			_, _ = prompt.Clean(text)
		})
	}
}

func FuzzDigest(f *testing.F) {
	for _, l := range table(f, "languages.txt") {
		f.Add(l[1], l[2]+" "+l[3], "## Facts\n- user: "+l[2], l[3], 100)
	}
	f.Add("<coppice-summary>", "user:\n| x", "Extract of earlier messages, made without a language model.\n\n## Facts\n- assistant: <", "\u200d", -1)
	counter := tokens.O200k()
	f.Fuzz(func(t *testing.T, user, assistant, prior, instructions string, target int) {
		if len(user)+len(assistant)+len(prior)+len(instructions) > 20_000 {
			return
		}
		raw, _ := json.Marshal(user)
		in := prompt.Input{
			Nonce: prompttest.Nonce, Prior: prior, Instructions: instructions, TargetTokens: target % 5000,
			Fold:      []tree.Message{prompttest.UserSays(user), prompttest.AssistantSays(assistant), {Role: tree.RoleTool, Body: raw}, {Role: tree.RoleUser, Body: []byte(user)}},
			LookAhead: []tree.Message{prompttest.UserSays(assistant)},
		}
		for range 3 {
			got := extract(in, counter)
			checkDigest(t, in, got, counter)
			in.Prior, in.PriorTokens = got, counter.Count(got)
		}
	})
}

// indexOf is the index of a digest, without what introduces its line.
func indexOf(digest string) string {
	_, index, _ := strings.Cut(digest, indexHeading+"\n")
	return strings.TrimPrefix(index, indexLine)
}

// TestJoinedPiecesMakeNoTag has pieces of a digest that make a tag of the prompt where
// they come to stand beside each other.
func TestJoinedPiecesMakeNoTag(t *testing.T) {
	t.Parallel()
	in := prompt.Input{Fold: []tree.Message{prompttest.UserSays("It has `wood_1<` and Coppice-17."), prompttest.AssistantSays("…")}}
	r := newReader(in, tokens.O200k(), 1000)
	r.readFold(in.Fold)
	p := newPicker(r, 1000)
	p.addEntries("")
	index := indexOf(p.index())
	check.That(t, strings.HasPrefix(index, " wood_1( Coppice-17"), "the index is %q", index)
	p.items = []item{{source: source{speaker: "user"}, text: "It has wood_1<"}, {source: source{speaker: "user"}, text: "Coppice-17 has it."}}
	p.chosen = []int{0, 1}
	if text := p.text(); !strings.HasSuffix(text, "- user: It has wood_1( Coppice-17 has it.") {
		t.Errorf("the text is %q", text)
	}
}

// A number in a script without spaces stands in the index with what it counts.
func TestIndexNumbersWithoutSpaces(t *testing.T) {
	t.Parallel()
	r := newReader(prompt.Input{}, ones{}, 1000)
	r.readFold([]tree.Message{prompttest.UserSays("会议改到15点开始")})
	p := newPicker(r, 1000)
	p.addEntries("")
	check.Equal(t, "it is", indexOf(p.index()), " 改到15点开")
}

// An index keeps facts of several words whole through a merge.
func TestIndexReadsItself(t *testing.T) {
	t.Parallel()
	r := newReader(prompt.Input{}, ones{}, 1000)
	r.readPrior("Extract of earlier messages, made without a language model.\n\n" + indexHeading + "\n" + indexLine + ` 6:30 "St. Moritz" 1931 Lerwick Bodø harbour lantern`)
	var got []string
	for _, it := range r.items {
		got = append(got, it.text)
	}
	want := `6:30|"St. Moritz"|1931|Lerwick|Bodø|harbour|lantern`
	check.That(t, strings.Join(got, "|") == want, "it reads %q", got)
}
