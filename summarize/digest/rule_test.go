package digest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

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
			fold := []tree.Message{prompttest.UserSays("…")}
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
	var fold []tree.Message
	for n := range 40 {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("Never lend the Zb%crak number %d to a neighbour.", 'a'+n%26, n)),
			prompttest.AssistantSays(fmt.Sprintf("Order K-%d of %d crates lies in hall H-%d.", n, 1000+7*n, 31*n)))
	}
	lines := digestLines(extract(prompt.Input{Fold: fold, TargetTokens: 500}, counter))
	if bans, facts := len(lines["Decisions and preferences"]), len(lines["Facts"]); bans < 5 || facts < 3 {
		t.Errorf("%d rules and %d facts", bans, facts)
	}
}
