package digest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// languages are short chats: what must be found as a decision, preference or
// correction, a fact with something exact in it, and small talk.
var languages = []struct{ name, decision, fact, talk string }{
	{"English", "From now on, always answer in metric units.", "The gate code is 4471.", "The weather is rather nice today."},
	{"German", "Nein, der Termin ist am 12. Mai, nicht am 11. Mai.", "Der Server heißt web-03.example.de.", "Heute scheint schön die Sonne draußen."},
	{"French", "Je préfère que tu répondes toujours en français.", "Le fichier est /home/lea/rapport.pdf.", "Il fait plutôt beau aujourd'hui, je trouve."},
	{"Spanish", "A partir de ahora usa siempre el puerto 8080.", "La reserva es la ABC123.", "Hoy hace un día muy bonito en la costa."},
	{"Portuguese", "Na verdade, o prazo é 3 de junho.", "O site é https://loja.example.com.br.", "Hoje o dia está bonito e tranquilo."},
	{"Italian", "Abbiamo deciso di usare il treno delle 9:15.", "Il binario è il 7.", "Oggi è una giornata molto bella."},
	{"Dutch", "Ik wil vanaf nu altijd een bevestiging per e-mail.", "Het nummer is 020-5551234.", "Het is vandaag mooi weer buiten."},
	{"Polish", "Właściwie chodziło mi o salę 204, nie 203.", "Adres to jan@example.pl.", "Dzisiaj jest bardzo ładna pogoda."},
	{"Turkish", "Bundan sonra her zaman Türkçe cevap ver.", "Kapı numarası 34B.", "Bugün hava çok güzel ve sakin."},
	{"Vietnamese", "Từ bây giờ luôn luôn dùng múi giờ Hà Nội.", "Mã đơn hàng là VN-8821.", "Hôm nay trời rất đẹp và mát mẻ."},
	{"Indonesian", "Mulai sekarang selalu pakai kereta pagi.", "Nomor kursi 12A.", "Cuaca hari ini sangat cerah sekali."},
	{"Russian", "Нет, встреча в 15:30, а не в 14:30.", "Отчёт лежит в C:\\Отчёты\\май.xlsx.", "Сегодня на улице очень хорошая погода."},
	{"Ukrainian", "Відтепер завжди відповідай українською.", "Номер договору 77-А.", "Сьогодні надворі дуже гарна погода."},
	{"Greek", "Αποφασίσαμε να φύγουμε στις 8 Ιουλίου.", "Η πτήση είναι η A3-601.", "Σήμερα ο καιρός είναι πολύ καλός."},
	{"Arabic", "من الآن فصاعدا استخدم دائما المنفذ ٥٤٣٣.", "رقم الحجز هو QR-2040.", "الطقس جميل جدا اليوم في المدينة."},
	{"Persian", "از این به بعد همیشه به فارسی جواب بده.", "شماره پرواز W5-112 است.", "هوا امروز خیلی خوب و آفتابی است."},
	{"Hebrew", "מעכשיו תמיד תענה בעברית בלבד.", "מספר ההזמנה הוא 5521.", "מזג האוויר היום נעים מאוד בחוץ."},
	{"Hindi", "नहीं, बैठक १५ मार्च को है।", "कमरा नंबर 302 है।", "आज मौसम बहुत अच्छा और साफ है।"},
	{"Bengali", "এখন থেকে সবসময় বাংলায় উত্তর দাও।", "ফোন নম্বর ০১৭১২৩৪৫৬৭।", "আজ আবহাওয়া খুব সুন্দর লাগছে।"},
	{"Thai", "ต้องส่งรายงานทุกวันศุกร์เสมอ", "รหัสประตูคือ 8842", "วันนี้อากาศดีมากเลยนะ"},
	{"Chinese", "不对，端口是5433，不是5432。", "文件在/srv/data/报告.xlsx里。", "今天的天气非常好，阳光明媚。"},
	{"Japanese", "今後は必ず敬語で答えてください。", "会議室はB-204です。", "今日はとてもいい天気ですね。"},
	{"Korean", "앞으로 항상 존댓말로 대답해 주세요.", "예약 번호는 KR-9912입니다.", "오늘 날씨가 정말 좋네요."},
}

func TestDigestLanguages(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			fold := []tree.Message{prompttest.UserSays("…"), prompttest.AssistantCalls("f", "{}")} // the goal is another message, and an assistant answers
			for i := range 30 {
				fold = append(fold, prompttest.AssistantSays(l.talk+fmt.Sprint(strings.Repeat("!", i))), prompttest.UserSays(l.talk+strings.Repeat("…", i)))
			}
			fold[8] = prompttest.UserSays(l.talk + " " + l.decision + " " + l.talk)
			fold[20] = prompttest.UserSays(l.fact + " " + l.talk)
			in := prompt.Input{Fold: fold, TargetTokens: 260}
			for round := range 2 {
				got := extract(in, counter)
				checkDigest(t, in, got, counter)
				lines := digestLines(got)
				if decisions := strings.Join(lines["Decisions and preferences"], "\n"); !strings.Contains(decisions, l.decision) {
					t.Errorf("round %d: the decision is not in\n%s", round, decisions)
				}
				if !strings.Contains(got, l.fact) {
					t.Errorf("round %d: the fact is not in\n%s", round, got)
				}
				in = prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 260, Fold: fold[:6]}
			}
		})
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil}, {"\n\n \n", nil}, {"One.", []string{"One."}},
		{"This is one thing. This is another! Is it? Yes, it is…", []string{"This is one thing.", "This is another!", "Is it? Yes, it is…"}},
		{"No. The port is 5433. And that is all.", []string{"No. The port is 5433.", "And that is all."}},
		{"See Dr. Okafor at 3.14 Main St. today, e.g. at noon.", []string{"See Dr. Okafor at 3.14 Main St. today, e.g. at noon."}},
		{"Open https://example.com/a.b?c=d. Then read main.go. Done now.", []string{"Open https://example.com/a.b?c=d.", "Then read main.go. Done now."}},
		{"He said “Stop it right now.” Then he left.", []string{"He said “Stop it right now.”", "Then he left."}},
		{"不对。端口是5433。今天天气很好！你呢？", []string{"不对。端口是5433。", "今天天气很好！你呢？"}},
		{"هذا سؤال أول هنا؟ وهذا جواب طويل.", []string{"هذا سؤال أول هنا؟", "وهذا جواب طويل."}},
		{"यह पहला वाक्य है। यह दूसरा वाक्य है।", []string{"यह पहला वाक्य है।", "यह दूसरा वाक्य है।"}},
		{"# Title\n\n- first point\n* second point\n1. third point\n> quoted\n---\n#42 is open\n2024 was good", []string{"Title", "first point", "second point", "third point", "quoted", "#42 is open", "2024 was good"}},
		{"This line was wrapped by an editor at some column\nand goes on here.\nA new one.", []string{"This line was wrapped by an editor at some column\nand goes on here.", "A new one."}},
		{"before the code\r\n```go\r\nx := 1\r\n```\r\nafter the code", []string{"before the code", "code: x := 1", "after the code"}},
	} {
		var got []string
		for s := range sentences(c.text) {
			if s.code {
				s.text = "code: " + s.text
			}
			got = append(got, s.text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("sentences(%q)\n got %q\nwant %q", c.text, got, c.want)
		}
	}
	thai := strings.Repeat("วันนี้อากาศดีมากเลยนะครับ", 100)
	for s := range sentences(thai) {
		if len(s.text) > maxSentence+utf8.UTFMax || !utf8.ValidString(s.text) {
			t.Errorf("a sentence of %d bytes: %q", len(s.text), s.text)
		}
	}
}

// ruleChats are what a user forbids or dislikes, and a sentence that has words of
// a rule and holds none.
var ruleChats = []struct{ name, rule, none string }{
	{"English", "No Bramley, please: my mother can't stand it.", "Never mind, we will see."},
	{"English, a ban", "Yes please, but never send text messages to customers.", "No problem at all, never mind."},
	{"German", "Bitte keine Walnüsse, mein Vater hasst sie.", "Das ist nicht so wichtig, mal sehen."},
	{"French", "Pas de noix, ma mère les déteste.", "Ce n'est pas important, on verra."},
	{"Spanish", "Nada de nueces, mi madre las odia.", "No es importante, ya veremos."},
	{"Portuguese", "Nada de nozes, minha mãe odeia.", "Não é importante, vamos ver."},
	{"Italian", "Niente noci, mia madre le odia.", "Non è importante, vedremo."},
	{"Dutch", "Geen walnoten, mijn moeder haat ze.", "Dat is niet belangrijk, laat maar."},
	{"Polish", "Unikaj orzechów, mama ich nienawidzi.", "To nie jest ważne, zobaczymy."},
	{"Turkish", "Ceviz olmasın, annem nefret eder.", "Önemli değil, boş ver."},
	{"Vietnamese", "Đừng dùng hạt óc chó, mẹ tôi ghét.", "Không quan trọng đâu, thôi kệ."},
	{"Indonesian", "Jangan pakai kenari, ibu saya benci.", "Tidak penting, lupakan saja."},
	{"Russian", "Никаких орехов: мама их терпеть не может.", "Это не важно, посмотрим."},
	{"Ukrainian", "Ніяких горіхів, мама їх ненавидить.", "Це не важливо, побачимо."},
	{"Greek", "Χωρίς καρύδια, η μητέρα μου τα μισεί.", "Δεν είναι σημαντικό, θα δούμε."},
	{"Arabic", "تجنب الجوز، أمي لا تطيق طعمه.", "غير مهم، لا بأس."},
	{"Persian", "گردو نباشد، مادرم متنفر است.", "مهم نیست، بی\u200cخیال."},
	{"Hebrew", "בלי אגוזים, אמא שלי שונאת אותם.", "לא חשוב, נראה."},
	{"Hindi", "अखरोट मत डालना, माँ को नफरत है।", "कोई बात नहीं, देखेंगे।"},
	{"Bengali", "আখরোট দেবেন না, মা ঘৃণা করেন।", "কোনো ব্যাপার না, দেখা যাক।"},
	{"Thai", "อย่าใส่วอลนัท แม่เกลียดมาก", "ไม่สำคัญ ไม่เป็นไร"},
	{"Chinese", "别放核桃，我妈妈很讨厌。", "不要紧，没关系。"},
	{"Japanese", "くるみは抜きで、母が嫌いです。", "気にしないで、重要ではない。"},
	{"Korean", "호두는 빼 주세요, 어머니가 싫어하세요.", "신경 쓰지 마, 중요하지 않아."},
	{"German, an order", "Such den Grund, aber ändere nichts an der Datenbank.", "Das ändert sich noch."},
	{"French, an order", "Cherche la cause, mais ne supprime aucun fichier.", "Pas de souci, on verra."},
	{"Spanish, an order", "Busca la causa, pero no borres las copias.", "No pasa nada, ya veremos."},
	{"Portuguese, an order", "Procure a causa, mas não apague as cópias.", "Não se preocupe, vamos ver."},
	{"Italian, an order", "Cerca la causa, ma non toccare le copie.", "Non fa niente, vedremo."},
	{"Russian, an order", "Найди причину, но кэш не очищай.", "Не страшно, посмотрим."},
	{"Arabic, an order", "ابحث عن السبب، ولا تحذف أي ملف.", "لا بأس، لا يهم."},
	{"English, a condition", "Yes, but after the shop has closed.", "I see, never mind."},
	{"German, a condition", "Ja, aber erst nach Ladenschluss.", "Kein Problem, mal sehen."},
	{"French, a condition", "Oui, mais après la fermeture du magasin.", "Pas grave, on verra."},
	{"Spanish, a condition", "Sí, pero después del cierre de la tienda.", "No importa, ya veremos."},
	{"Russian, a condition", "Да, но после закрытия магазина.", "Неважно, посмотрим."},
	{"Arabic, a condition", "نعم، لكن بعد إغلاق المتجر.", "لا يهم، لا بأس."},
	{"Chinese, a condition", "可以，但要等商店关门以后。", "没关系，不要紧。"},
}

// What the user forbids has room before sentences that say more by the token,
// in the first digest and in those that merge it. "Never mind" forbids nothing.
func TestDigestRules(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, l := range ruleChats {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			rich := func(n int) tree.Message {
				return prompttest.AssistantSays(fmt.Sprintf("Zb%crak-%d costs %d EUR in Kal%cton, %s.", 'a'+n%26, 100+n, 1000+7*n, 'a'+n%26, []string{"Wendom", "Oslavia", "Tarnhult"}[n%3]))
			}
			fold := []tree.Message{prompttest.UserSays("…"), prompttest.AssistantCalls("f", "{}")}
			for n := range 30 {
				fold = append(fold, rich(n), prompttest.UserSays(fmt.Sprintf("Quarry-%d delivers on %d May from Hollin%c Road, gate G-%d.", n, 1+n%28, 'a'+n%26, 31*n)))
			}
			fold[12] = prompttest.UserSays(l.rule)
			fold[24] = prompttest.UserSays(l.none)
			in := prompt.Input{Fold: fold, TargetTokens: 200}
			for round := range 2 {
				got := extract(in, counter)
				checkDigest(t, in, got, counter)
				decisions := strings.Join(digestLines(got)["Decisions and preferences"], "\n")
				if !strings.Contains(decisions, l.rule) {
					t.Errorf("round %d: the rule is not in\n%s", round, got)
				}
				if strings.Contains(decisions, l.none) {
					t.Errorf("round %d: %q holds no rule:\n%s", round, l.none, got)
				}
				in = prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 200, Fold: fold[40:52]}
			}
		})
	}
}

// Rules have a share of the room, and no more: facts have the rest.
func TestDigestRulesHaveAShare(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	fold := []tree.Message{prompttest.AssistantCalls("f", "{}")}
	for n := range 40 {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("Never lend the Zb%crak number %d to a neighbour.", 'a'+n%26, n)),
			prompttest.AssistantSays(fmt.Sprintf("Order K-%d of %d crates lies in hall H-%d.", n, 1000+7*n, 31*n)))
	}
	lines := digestLines(extract(prompt.Input{Fold: fold, TargetTokens: 500}, counter))
	if bans, facts := len(lines["Decisions and preferences"]), len(lines["Facts"]); bans < 5 || facts < 3 {
		t.Errorf("%d rules and %d facts", bans, facts)
	}
}
