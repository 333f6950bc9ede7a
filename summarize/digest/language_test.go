package digest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"

	"github.com/coppice-chat/coppice/summarize/prompt"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
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
			fold := []tree.Message{prompttest.UserSays("…")} // the goal is another message
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
		{"Open https://example.com/a.b?c=d. Then read main.go. Done now.", []string{"Open https://example.com/a.b?c=d.", "Then read main.go.", "Done now."}},
		{"He said “Stop it right now.” Then he left.", []string{"He said “Stop it right now.”", "Then he left."}},
		{"不对。端口是5433。今天天气很好！你呢？", []string{"不对。端口是5433。", "今天天气很好！", "你呢？"}},
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

func TestMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Call me at +49-30-1234567, please.":                         "+49-30-1234567",
		"Mail to ada@example.org (or grace@example.org).":            "ada@example.org grace@example.org",
		"See https://example.com/x?y=1, then /etc/hosts and ./a/b.c": "https://example.com/x?y=1 /etc/hosts ./a/b.c",
		`Open C:\Users\ada\x.txt and read_file() in HandleRequest.`:  `C:\Users\ada\x.txt read_file() HandleRequest`,
		"It costs $12.50 or 20 % of it, see #77.":                    "$12.50 20 #77",
		"端口是5433，文件在/srv/data里。":                                     "5433 /srv/data",
		"المنفذ ٥٤٣٣ هنا":                                            "٥٤٣٣",
		"Run main.go and Makefile.":                                  "main.go",
		"This is it. And/or that.":                                   "",
		"NASA uses NATO codes":                                       "NASA NATO",
	} {
		if got := strings.Join(marksOf(text), " "); got != want {
			t.Errorf("marksOf(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}
