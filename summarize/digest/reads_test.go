package digest

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// tenth is the digest of messages that have 200 tokens each.
func tenth(t *testing.T, target int, fold ...tree.Message) string {
	t.Helper()
	counter := tokens.O200k()
	for i := range fold {
		fold[i].Tokens = 200
	}
	in := prompt.Input{Fold: fold, TargetTokens: target}
	got := extract(in, counter)
	checkDigest(t, in, got, counter)
	return got
}

// A question that was answered says less than its answer, decides nothing and is
// not open.
func TestDigestAnsweredQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ question, answer string }{
		{"Where is the old Brandeis lantern no longer in use?", "The harbour of Lerwick gave up its lantern in 1931, when the mole was rebuilt."},
		{"Wo wird die alte Laterne der Brandeis nicht mehr benutzt?", "Der Hafen von Lerwick hat seine Laterne 1931 aufgegeben, als die Mole umgebaut wurde."},
		{"Où la vieille lanterne de Brandeis n'est plus allumée ?", "Le port de Lerwick a renoncé à sa lanterne en 1931, quand le môle fut reconstruit."},
		{"¿Dónde ya no se usa el viejo farol de Brandeis?", "El puerto de Lerwick renunció a su farol en 1931, cuando se reconstruyó el muelle."},
		{"Где больше не используют старый фонарь Брандейса?", "Порт Лервик отказался от фонаря в 1931 году, когда перестроили мол."},
		{"布兰代斯的旧灯笼在哪里不再使用？", "勒威克港在1931年重建防波堤时放弃了它的灯笼。"},
	} {
		got := tenth(t, 75, prompttest.UserSays("…"), prompttest.AssistantSays("…"), prompttest.UserSays(c.question), prompttest.AssistantSays(c.answer), prompttest.UserSays("…"))
		if !strings.Contains(got, c.answer) {
			t.Errorf("the answer to %q is lost:\n%s", c.question, got)
		}
		if lines := digestLines(got); len(lines["Decisions and preferences"]) > 0 || len(lines["Open or not confirmed"]) > 0 {
			t.Errorf("%q decides something:\n%s", c.question, got)
		}
	}
	got := tenth(t, 400, prompttest.UserSays("Which papers do I have to bring to the office in Lerwick?"), prompttest.AssistantSays("The passport and form K-17."), prompttest.UserSays("No, can it be form K-18?"), prompttest.AssistantSays("It can."), prompttest.UserSays("Is the office open on 3 May?"))
	lines := digestLines(got)
	if open := strings.Join(lines["Open or not confirmed"], "|"); open != "user: Is the office open on 3 May?" {
		t.Errorf("open is %q:\n%s", open, got)
	}
	if !strings.Contains(strings.Join(lines["Decisions and preferences"], "|"), "No, can it be form K-18?") {
		t.Errorf("a question that corrects is lost:\n%s", got)
	}
}

// What people tell each other without an assistant stands in one list, in their
// order: what was said is what was agreed.
func TestDigestOfPeople(t *testing.T) {
	t.Parallel()
	said := func(name, text string) tree.Message {
		return prompttest.Message(tree.RoleUser, map[string]any{"name": name, "content": text})
	}
	got := tenth(t, 400, said("Bo", "Actually I sold the violin in Bergen last week."), said("Ada", "I never liked the ferry to Bodø, it is always late."), said("Bo", "We finished the fence on Saturday."))
	lines := digestLines(got)
	if len(lines["Facts"]) != 3 || len(lines) != 2 {
		t.Errorf("it has other headings than one:\n%s", got)
	}
	if !strings.Contains(got, "violin") || strings.Index(got, "violin") > strings.Index(got, "Bodø") || strings.Index(got, "Bodø") > strings.Index(got, "fence") {
		t.Errorf("it is in another order:\n%s", got)
	}
}

// A sentence that points back stands with what it points to: with the question
// that it answers, or behind the sentence before it.
func TestDigestLeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ question, answer string }{
		{"Shall the page remind customers of their order?", "Yes, but never send text messages to customers from it."},
		{"Soll ich die Gruppe in Fulda am Bahnhof abholen?", "Ja, aber nur die elf Leute aus dem zweiten Zug."},
		{"Qui a choisi la première mesure de Givry ?", "C'est ma directrice, Mme Achour, qui a choisi cela."},
		{"¿Puede borrar la cola las fotos antiguas?", "Sí, pero nunca borres las fotos de la cola."},
		{"Можно отправить отчёт всей группе в Твери?", "Нет, отчёт должен уйти Марине Львовне."},
		{"要把旧的退款任务停掉吗？", "是的，但是不要重启生产环境。"},
	} {
		if got := tenth(t, 400, prompttest.UserSays("…"), prompttest.AssistantSays(c.question), prompttest.UserSays(c.answer)); !strings.Contains(got, "["+c.question+"] "+c.answer) {
			t.Errorf("%q stands without its question:\n%s", c.answer, got)
		}
	}
	r := newReader(prompt.Input{}, 4000)
	r.readFold([]tree.Message{prompttest.UserSays("The miller Tarn sold the northern weir. She bought the Quarn saddle back. Oslavia lent the kettle.")})
	p := newPicker(r, tokens.O200k(), 4000)
	alone := p.density(1)
	p.taken[0] = true
	if with := p.density(1); !r.items[1].leans || alone >= with {
		t.Errorf("a sentence that leans counts %g alone and %g with the one before it", alone, with)
	}
	if p.taken[0] = false; r.items[2].leans || r.items[0].leans {
		t.Error("sentences that name their subject lean")
	}
}

// A greeting has no room beside sentences, also one with a name.
func TestDigestLeavesOutGreetings(t *testing.T) {
	t.Parallel()
	for _, greeting := range []string{"Guten Morgen, Frau Li.", "Good morning, Mrs Osei!", "Bonjour, Mme Achour !", "Buenos días, Camila.", "Добрый день, Марина Львовна!", "你好，陈岚！", "おはよう、北村先生。"} {
		got := tenth(t, 200, prompttest.UserSays("The weir of Tarn was closed on 14 May."), prompttest.AssistantSays("The miller keeps 3 keys in Leith."), prompttest.UserSays(greeting), prompttest.AssistantSays("The clerk opens the sluice when the river is above 2 metres."))
		if strings.Contains(got, greeting) || !strings.Contains(got, "14 May") || !strings.Contains(got, "2 metres") {
			t.Errorf("of %q it makes\n%s", greeting, got)
		}
	}
}

// Rows of numbers and scraps of code count less than sentences.
func TestDigestScraps(t *testing.T) {
	t.Parallel()
	worth := func(text string) float64 {
		r := newReader(prompt.Input{}, 4000)
		r.add(sentence{text: text}, messageFacts{role: tree.RoleUser, speaker: "user"})
		return r.items[0].worth
	}
	plain := worth("The weir of Tarn has a gate.")
	for text, most := range map[string]float64{
		"1.0 1.000 3.4 .654 5.8 .479 1.1 .995 3.5 .644 5.9 .474": 0.05, `"prompt": "What is the weather like in Leith?",`: 0.2, "return lantern.Trim(weir);": 0.2,
		"Paid 12, 14, 15, 18, 21, 25, 27 and 31 euros for the nuts of Tarn and Leith.": 1,
	} {
		if got := worth(text) / plain; got > most*1.01 || got < most*0.99 {
			t.Errorf("%q counts %g of a sentence, not %g", text, got, most)
		}
	}
}

// What is cut ends at a comma, but not at one in a number.
func TestDigestCutsAtCommas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The miller opens the sluice at dawn, and the clerk writes down how high the river stands then.": "The miller opens the sluice at dawn …",
		"The miller opens the sluice of Tarn at 3,500 litres a second and the clerk writes it down.":     "The miller opens the sluice of Tarn at 3,500 …",
		"磨坊主在黎明时分打开水闸放水的时候总要先看一看，然后文员写下河水的高度和当天的天气情况还有所有来往船只的名字以及载货的重量":                                  "磨坊主在黎明时分打开水闸放水的时候总要先看一看 …",
	} {
		length := 53
		if text[0] > 'z' {
			length = 38
		}
		if got := shorten(text, length, nil); got != want {
			t.Errorf("it cuts to %q, not %q", got, want)
		}
	}
}

// Words that only have the letters of a ban, as 特别 and 別れて have 别, are none.
func TestDigestBansAreWords(t *testing.T) {
	t.Parallel()
	for text, ban := range map[string]bool{"特别高兴见到许文博。": false, "彼女と別れてきました。": false, "别放核桃。": true, "好的，别放核桃。": true, "请别放核桃。": true} {
		if got := cues.find(text)&cueBan != 0; got != ban {
			t.Errorf("%q is a ban: %v", text, got)
		}
	}
}

// Among people without an assistant a name in the index counts more than twice.
func TestDigestNamesOfPeople(t *testing.T) {
	t.Parallel()
	value := func(assisted bool) float64 {
		r := newReader(prompt.Input{}, 4000)
		r.readFold([]tree.Message{prompttest.UserSays("The weir is in Kalaton.")})
		r.assisted = assisted
		p := newPicker(r, tokens.O200k(), 4000)
		all := p.entries(nil, 0, make([]int, len(r.vocabulary)))
		if len(all) != 1 || !all[0].fact {
			t.Fatalf("the entries are %v", all)
		}
		return all[0].value
	}
	if people, assisted := value(false), value(true); people < 2*assisted || assisted <= 0 {
		t.Errorf("it counts %g among people and %g beside an assistant", people, assisted)
	}
}

// Among people an answer that is nothing but a number stands with its question.
func TestDigestOfBareNumbers(t *testing.T) {
	t.Parallel()
	said := func(name, text string) tree.Message {
		return prompttest.Message(tree.RoleUser, map[string]any{"name": name, "content": text})
	}
	got := tenth(t, 120, said("Ines", "Has Nadia a telephone?"), said("Sam", "06 39 98 12 04."), said("Ines", "Hm."), said("Sam", "Hm."))
	if !strings.Contains(got, "user Sam: [Has Nadia a telephone?] 06 39 98 12 04.") {
		t.Errorf("the number stands alone:\n%s", got)
	}
}

// Arabic tells by one word what was done and what happened once. Only where an
// assistant's sentence begins with it, it may be open.
func TestDigestArabicPassive(t *testing.T) {
	t.Parallel()
	const history, work = "المبنى القديم تم توسيعه مرتين في 1931 قرب ميناء لرويك.", "تم تعديل load_sales.py وهو يقبل الاسمين الآن."
	lines := digestLines(tenth(t, 400, prompttest.UserSays("…"), prompttest.AssistantSays(history), prompttest.UserSays("…"), prompttest.AssistantSays(work), prompttest.UserSays("…")))
	if facts, open := strings.Join(lines["Facts"], "|"), strings.Join(lines["Open or not confirmed"], "|"); !strings.Contains(facts, history) || !strings.Contains(open, work) {
		t.Errorf("facts %q, open %q", facts, open)
	}
}
