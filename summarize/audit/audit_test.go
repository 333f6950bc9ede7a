package audit

import (
	"errors"
	"github.com/coppice-chat/coppice/internal/check"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

const before = `## Task
Mara Lindholm moves her bakery from 14 Quay Street to 98 Foundry Road.

## Facts
- The oven is a Salva Kwik-co 1987, 1,120 kg, 32 A. The lease ends on 30 September.
- The landlord, Mr. Dorsch, allows 500 kg/m² and no delivery before 6:30.
- Budget: 6,000 euros; the mover Krahl asks for 1,850 euros.

## Decisions
- Krahl moves the oven, not Biele. Mara drives the sourdough "Olga" herself.`

var said = []string{
	"The electrician Yilmaz can come on 19 August at 9:00. He wants 640 euros for the priority switch, and needs the fuse plan.",
	"Then confirm him. The fuse plan is in docs/fuses-v3.pdf.",
	"Done, I confirmed Yilmaz. One more thing: the scale Bizerba GS-340 has to be calibrated again after the move, by the office in Harburg.",
	"How long does the office need?",
	"Two weeks, and it costs 85 euros. So I want the scale moved on 25 August already, with the van of my sister Ilse.",
	"Noted: the scale on 25 August, with Ilse's van, calibrated by Harburg until 8 September.",
	"No, not by 8 September. The shop opens on 11 September, and until then it must be there. And no gas in the new shop, whatever Krahl says.",
	"Understood: until 11 September, and no gas.",
	"Please ask the baker's guild whether the sign \"Lindholm & Daughters\" may hang over the door. Their number is 040-555-0199.",
	"I wrote to guild@harburg.example. They answer within three days.",
	"Fine. The flour comes from Mill Steenbock, 25 kg sacks of type 1050, and of rye 1150.",
	"How many sacks?", "Forty of 1050, twelve of 1150, to be delivered on 9 September before noon.",
	"I ordered them: 40 and 12, order number MS-20931.",
	"Great. Next we need a name for the wifi.", "How about Crumbs-Guest?",
}

func fold() (messages []tree.Message) {
	for i, text := range said {
		m := prompttest.UserSays(text)
		if i%2 == 1 {
			m = prompttest.AssistantSays(text)
		}
		m.Tokens = 100 // as if it said much more that tells nothing
		messages = append(messages, m)
	}
	return messages
}

// input is the conversation, in a merge with the summary before or without it.
func input(merge bool) prompt.Input {
	in := prompt.Input{Fold: fold(), TargetTokens: 400}
	if merge {
		in.Prior, in.PriorTokens = before, tokens.O200k().Count(before)
	}
	return in
}

const (
	honest = `## Task
Mara Lindholm moves her bakery from 14 Quay Street to 98 Foundry Road; the shop opens on 11 September.

## Facts
- Oven Salva Kwik-co 1987, 1,120 kg, 32 A. Lease ends on 30 September. Dorsch allows 500 kg/m², no delivery before 6:30. Budget 6,000 euros.
- Scale Bizerba GS-340: moved on 25 August with Ilse's van, calibrated in Harburg (two weeks, 85 euros) until 11 September.

## Decisions
- Krahl (1,850 euros) moves the oven, not Biele; Mara drives "Olga". No gas in the new shop.
- Yilmaz on 19 August at 9:00, 640 euros; fuse plan docs/fuses-v3.pdf. Mill Steenbock: 40 sacks of 1050, 12 of 1150, on 9 September, order MS-20931.`

	alone = `The electrician Yilmaz comes on 19 August at 9:00 for 640 euros; the fuse plan is docs/fuses-v3.pdf. The scale Bizerba GS-340 is moved on 25 August with Ilse's van, and calibrated in Harburg for 85 euros until 11 September. Flour: Mill Steenbock, order number MS-20931.`
)

// What is no summary of the messages is refused, each for its own reason.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		merge  bool
		answer string
		want   error
	}{
		{"a long refusal", false, llmtest.NoSummaries["a long refusal"], errNothing},
		{"a question", false, llmtest.NoSummaries["a question"], errNothing},
		{"headings", false, llmtest.NoSummaries["headings"], errHeadings},
		{"nothing more", false, llmtest.NoSummaries["nothing more"], errRepeated},
		{"one line", false, llmtest.NoSummaries["one line"], errRepeated},
		{"JSON", false, llmtest.NoSummaries["JSON"], errJSON},
		{"a tool call", false, llmtest.NoSummaries["a tool call"], errCall},
		{"a reply to the chat", false, llmtest.NoSummaries["a reply"], errNothing},
		{"another matter", false, llmtest.NoSummaries["another matter"], errForeign},
		{"a reply in the words of the chat", false, "Sure. I would ask the electrician whether the new shop needs the fuse plan before the scale and the flour are delivered, and whether the office wants to wait. Boxes are cheap at Kestrel in Bremen, 77 of them for 31 pounds.", errForeign},
		{"the summary before, word for word", true, before, errRepeats},
		{"the messages alone", true, alone, errForgets},
		{"another language", false, "Der Elektriker Yilmaz kommt am 19 August um 9:00 für 640 Euro; der Plan ist docs/fuses-v3.pdf. Die Waage Bizerba GS-340 wird am 25 August mit dem Wagen von Ilse gebracht und in Harburg geeicht. Das Mehl ist von Steenbock, und die Nummer ist MS-20931. Es gibt kein Gas, und das Schild ist nicht entschieden.", ErrLanguage},
	} {
		found := Of(input(test.merge), test.answer)
		check.That(t, errors.Is(found.Problem, test.want), "%s: %v (%+v), want %v", test.name, found.Problem, found.Audit, test.want)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	instructed := input(false)
	instructed.Instructions = "Only the flour, in German."
	for _, test := range []struct {
		name   string
		in     prompt.Input
		answer string
	}{
		{"of the messages", input(false), alone},
		{"a merge", input(true), honest},
		{"a merge that forgets a half", input(true), honest[:strings.Index(honest, "- Krahl")] + honest[strings.Index(honest, "- Yilmaz"):]},
		{"with facts of the messages after the cutoff", prompt.Input{Fold: fold()[12:], LookAhead: fold()[:12], TargetTokens: 400}, alone},
		{"of messages that say nothing", prompt.Input{Fold: []tree.Message{prompttest.UserSays("Hi!"), prompttest.AssistantSays("Hello. How are you?"), prompttest.UserSays("Fine.")}, TargetTokens: 200}, "The user said hello, and nothing else was talked about."},
		{"as the instructions want it", instructed, "Das Mehl kommt von Steenbock: 40 Sack 1050 und 12 Sack 1150, und es wird am 9. September geliefert, das ist vor dem Mittag und nicht danach."},
	} {
		found := Of(test.in, test.answer)
		check.That(t, found.Problem == nil, "%s: %v (%+v)", test.name, found.Problem, found.Audit)
	}
}

// The figures of a merge: what it lacks is named, and what it makes up.
func TestFigures(t *testing.T) {
	t.Parallel()
	found := Of(input(true), honest)
	check.That(t, found.Fold >= 0.4 && found.Fold <= 0.8 && found.Prior >= 0.8 && found.Prior <= 0.99 && found.Foreign == 0,
		"%+v", found.Audit)
	all := strings.Join(found.Missing, "\n")
	for _, fact := range []string{"guild@harburg.example", "lindholm & daughters", "040-555-0199", "crumbs-guest"} {
		check.That(t, strings.Contains(all, fact), "%q is not among what is missing: %q", fact, found.Missing)
	}
	check.That(t, !strings.Contains(all, "yilmaz"), "what it has is missing: %q", found.Missing)
	dated, added := input(false), input(true)
	for i := range dated.Fold {
		dated.Fold[i].CreatedAt = time.Date(2026, 8, 4, 9, 0, 0, 0, time.UTC)
	}
	if found := Of(dated, alone+" Asked on 4 August 2026, a Tuesday, of what was said on 31 July 2026 and in 2025."); found.Foreign != 0 {
		t.Errorf("dates of the messages are foreign: %+v", found.Audit)
	}
	added.Prior += "\n\n## " + prompt.FilledHeadings["en"] + "\n- user: The Velux GGL-88 of Hamm is by Ahlers, Brix and Claasen, order number VX-1170, at 14:30."
	if again := Of(added, honest); again.Prior != found.Prior {
		t.Errorf("a merge forgets what was added to the summary before: %+v, without it %+v", again.Audit, found.Audit)
	}
	if found := Of(input(true), honest+" The Moto Guzzi of 1972 is sold to Bert for 4,300."); found.Foreign < 0.05 || found.Foreign > 0.2 {
		t.Errorf("foreign facts: %+v", found.Audit)
	}
}

// What a summary lacks fills the room that it leaves, below a heading in its language.
func TestFill(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	german := prompt.Input{TargetTokens: 200, Fold: []tree.Message{
		prompttest.UserSays("Die Presse ist von Heidelberger und wiegt 1120 kg. Der Vermieter heißt Dorsch, und er will keinen Lärm nach 20 Uhr. Das Getzner Sylomer SR 110 kostet 212 Euro und wird am 8. September geliefert."),
	}}
	german.Fold[0].Tokens = 600
	agent, added := input(false), input(true)
	agent.Fold = append(agent.Fold, prompttest.AssistantCalls("read", `{"path":"cmd/ovens/main.go"}`), prompttest.ToolSays("read", "The port is 8790, and the token is QX-4471."), prompttest.UserSays("Ask for Mr. Ahlers in Hamm."))
	added.Prior += "\n\n## " + prompt.FilledHeadings["en"] + "\n- user: The window is a Velux GGL-88."
	for _, test := range []struct {
		name  string
		in    prompt.Input
		text  string
		want  []string // lines and parts of lines
		never string
	}{
		{"from both", input(true), "Mara Lindholm moves her bakery to 98 Foundry Road, and the scale Bizerba GS-340 has to be calibrated in Harburg for 85 euros. That is all of it for now, and the rest is open.",
			[]string{"\n\n## Also said (what stands above holds where it differs)\n", "Salva Kwik-co 1987, 1,120 kg", "040-555-0199", "- user: "}, "calibrated again"},
		{"below what was added before", input(true), before + "\n\n## Also said (what stands above holds where it differs)\n- user: The window is broken.", []string{"is broken.\n- "}, "differs)\n- user: The window is broken.\n\n## Also"},
		{"not of a tool", agent, "The oven is moved, and the shop opens.", []string{"Ahlers"}, "QX-4471"},
		{"not what a model left out again", added, "Mara moves her bakery, and the shop opens.", []string{"Salva"}, "Velux"},
		{"in German", german, "Es geht um die Presse von Heidelberger, die nicht in der alten Werkstatt bleibt und mit dem Wagen in die neue kommt.", []string{"\n\n## Außerdem gesagt (im Zweifel gilt, was oben steht)\n", "Getzner Sylomer SR 110"}, "Also said"},
	} {
		test.in.TargetTokens = max(test.in.TargetTokens, 200)
		got := Fill(test.in, test.text, counter)
		for _, want := range test.want {
			check.That(t, strings.Contains(got, want), "%s: no %q in\n%s", test.name, want, got)
		}
		if !strings.HasPrefix(got, test.text) || test.never != "" && strings.Contains(got, test.never) || counter.Count(got) > test.in.TargetTokens {
			t.Errorf("%s: %d tokens\n%s", test.name, counter.Count(got), got)
		}
	}
	full, instructed := input(true), input(true)
	full.TargetTokens = counter.Count(honest) + leastRoom
	instructed.Instructions = "No names."
	for name, in := range map[string]prompt.Input{"no room": full, "instructions": instructed} {
		if got := Fill(in, honest, counter); got != honest {
			t.Errorf("%s: %q is added", name, strings.TrimPrefix(got, honest))
		}
	}
}

// A text's language is told only where it is clear.
func TestLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		alone + said[6]: "en",
		"Ich weiß nicht, ob das der Plan ist, den wir auf dem Tisch und in der Mappe haben.": "de",
		"王芳住在杭州，对花生过敏，周五去看牙医。她想换一家公司。":                                                       "zh",
		"東京に住んでいて、ピーナッツのアレルギーがあります。":                                                         "ja",
		"Она живёт в Казани и хочет сменить работу.":                                         "ru",
		"Hm.":                           "",
		"func main() { fmt.Println() }": "",
		"Der Plan ist nicht das, was ich will, und das ist auch nicht der Weg. The plan is that you and her are not with the others of this.": "",
	} {
		got := languageOf(text)
		check.That(t, got == want, "%.30q: %q, want %q", text, got, want)
	}
}
