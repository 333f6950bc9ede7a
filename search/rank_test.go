package search

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// line builds an index of a branch of "role: text" or "role name: text".
func line(messages ...string) (*index, []int32) {
	x := newIndex()
	var path []int32
	parent := uuid.Nil
	for i, m := range messages {
		read(x, textOf(m, i, parent))
		parent = x.entries[i].id
		path = append(path, int32(i))
	}
	for i := 1; i < len(path); i++ {
		x.link(x.entries[i-1].id, int32(i-1))
	}
	return x, path
}

// read adds a message as a conversation does.
func read(x *index, t tree.MessageText) {
	m := chat.Read(t.Body)
	text := files(nil).recalled(m)
	x.add(t, m.Name, text, wordsOf(text))
}

func textOf(message string, i int, parent uuid.UUID) tree.MessageText {
	who, text, _ := strings.Cut(message, ": ")
	role, name, _ := strings.Cut(who, " ")
	body := map[string]any{"role": role, "content": text}
	if name != "" {
		body["name"] = name
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return tree.MessageText{ID: uuid.UUID{0: 1, 15: byte(i), 14: byte(i >> 8)}, ParentID: parent, Role: tree.Role(role), Depth: i, Tokens: len(text) / 4, Body: raw}
}

// order gives the depths of what is found, best first.
func order(x *index, path []int32, question string) (depths []int) {
	found := x.rank(x.newScope(path), question, MaxLimit, nil)
	for _, r := range found {
		depths = append(depths, int(x.entries[r.number].depth))
	}
	return depths
}

// Each rule of the ranking decides alone which of two messages comes first.
func TestRules(t *testing.T) {
	t.Parallel()
	filler := slices.Repeat([]string{"user: Numbers, letters, colours, shapes, sizes, weights, prices, places, dates, times and many other things."}, 5)
	with := func(messages ...string) []string {
		var all []string
		for _, m := range messages { // apart from each other, so that they are no neighbours
			all = append(append(all, filler...), m)
		}
		return append(all, filler...)
	}
	const at, next = 5, 11 // depths of the first and the second of them
	for _, test := range []struct {
		rule     string
		messages []string
		question string
		want     []int // the first of what is found
	}{
		{"a stem is found by another form", with("user: We painted the garden fence last summer."), "painting fences", []int{at}},
		{"more of the words is better", with("user: The fence was green.", "user: The green fence was painted."), "painted green fence", []int{next, at}},
		{"a rare word is better", with("user: The fence and the violin.", "user: The fence and the gate.", "user: The fence and the hedge."), "violin fence", []int{at}},
		{"again is better", with("user: Tulip, and then roses came.", "user: Tulip, tulip and tulip came."), "tulip", []int{next, at}},
		{"shorter is better", with("user: My violin teacher moved to another city far away from here last winter because of work reasons unknown.",
			"user: "+strings.Repeat("Another long sentence about many different things around town. ", 10)+"My violin teacher moved."), "violin teacher", []int{at}},
		{"function words are nothing", with("user: What did you do with it?", "user: Tulips."), "what did you do with the tulips", []int{next}},
		{"what a user said is better, where assistants say much", with("user: The violin is sold.", "assistant: The violin is sold.", "assistant: "+strings.Repeat("Many words about other things. ", 90)), "violin", []int{at, next}},
		{"an assistant who is brief is a person", with("user: The violin is sold.", "assistant: The violin is sold."), "violin", []int{next, at}},
		{"words that stand together are better", with("user: The support was good, and I left the group.", "user: The left group was good, a support group."), "support group", []int{next, at}},
		{"a question is worse", with("user: The violin is sold.", "user: The violin is sold?"), "violin", []int{at, next}},
		{"words about the talk are worse", with("user: The violin is sold.", "user: Talks were sold."), "talk violin", []int{at, next}},
		{"when asks for a time", with("user: The violin was sold yesterday.", "user: The violin was sold there."), "When did he sell the violin?", []int{at, next}},
		{"how many asks for a number", with("user: The violin has four strings.", "user: The violin has good strings."), "How many strings has the violin?", []int{at, next}},
		{"where asks for a name", with("user: The violin was sold in Lisbon.", "user: The violin was sold in secret."), "Where was the violin sold?", []int{at, next}},
		{"who is named is better", with("user Ada: The violin is sold.", "user Bo: The violin is sold."), "what did Bo do with the violin", []int{next, at}},
		{"who is called by a name that is named is better", with("user: The violin is sold.", "assistant: The violin is sold.", "assistant: Hi Bo!", "assistant: Oh Bo, no.", "assistant: Thanks, Bo."), "what did Bo do with the violin", []int{at, next}},
		{"two calls make no name", with("user: The violin is sold.", "assistant: The violin is sold.", "assistant: Hi Bo!", "assistant: Oh Bo, no."), "Has Bo sold the violin?", []int{next, at}},
		{"a name by which each calls the other is nobody's", with("user: The violin is sold.", "assistant: The violin is sold.", "assistant: Hi Bo!", "assistant: Oh Bo, no.", "assistant: Thanks, Bo.", "user: Hi Bo!"), "what did Bo do with the violin", []int{next, at}},
		{"greetings are worse", with("user: Violin lessons start on Tuesday at seven near the office.", "user: Violin!"), "violin", []int{at, next}},
		{"the later one is better, else", with("user: The violin is sold.", "user: The violin is sold."), "violin", []int{next, at}},
		{"no word is found", with("user: Tulips."), "zebra", nil},
	} {
		x, path := line(test.messages...)
		got := slices.DeleteFunc(order(x, path, test.question), func(depth int) bool { return depth%(len(filler)+1) != at })
		check.That(t, len(got) >= len(test.want) && slices.Equal(got[:len(test.want)], test.want) && (test.want != nil || got == nil),
			"%s: %v, want %v first", test.rule, got, test.want)
	}
}

// What was said on a day that a question names, or the day after, counts more, and in its month.
func TestDates(t *testing.T) {
	t.Parallel()
	day := func(text string) uint32 {
		at := check.Must(time.Parse(time.DateOnly, text))(t)
		return uint32(at.Unix())
	}
	for _, test := range []struct {
		question, day string
		want          float64
	}{
		{"What did she do on 7 May 2023?", "2023-05-07", dayFactor},
		{"What did she do on May 7th, 2023?", "2023-05-08", dayFactor},
		{"What did she do on the 7th of May?", "2021-05-07", dayFactor},
		{"What did she do on 2023-05-07?", "2023-05-09", monthFactor},
		{"What did she do in May 2023?", "2023-05-31", monthFactor},
		{"What did she do in May?", "2019-05-01", monthFactor},
		{"Was tat sie am 7. Mai 2023?", "2023-05-07", dayFactor},
		{"¿Qué hizo el 7 de mayo de 2023?", "2023-05-07", dayFactor},
		{"她2023年5月7日做了什么", "2023-05-07", dayFactor},
		{"What did she do on 7 May 2023?", "2022-05-07", 1},
		{"What did she do on 7 May 2023?", "2023-05-06", monthFactor},
		{"What may she do?", "2023-05-07", 1},
		{"On 31 February, what did she do?", "2023-03-03", 1},
		{"What did she do in May?", "", 1},
	} {
		at := uint32(0)
		if test.day != "" {
			at = day(test.day)
		}
		check.Equal(t, test.question+" of a message of "+test.day, askedBy(test.question).factor(at), test.want)
	}
}

// Where one person alone speaks, no message answers another one: less is passed on.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"user", "assistant"} {
		x, path := line("user: My boss lives in Lisbon.", role+": My aunt lives in Porto.", "user: My uncle lives in Bergen.", role+": My niece lives in Oslo.")
		found := x.rank(x.newScope(path), "boss", MaxLimit, nil)
		share := found[1].score / found[0].score
		check.That(t, (share < aloneFactor) == (role == "user"), "the second of two messages, of a %s, has %g of the score of the first", role, share)
	}
}

// Of a question with too many words the rarest count, and it doesn't take long.
func TestHugeQuestion(t *testing.T) {
	t.Parallel()
	var messages []string
	var question []string
	for i := range 300 {
		messages = append(messages, fmt.Sprintf("user: common%d common%d word%d", i%10, i%7, i))
		question = append(question, fmt.Sprintf("common%d", i%10), fmt.Sprintf("absent%d", i))
	}
	for i := range 60 {
		question = append(question, fmt.Sprintf("word%d", 4*i))
	}
	x, path := line(messages...)
	got := order(x, path, strings.Join(question, " "))
	check.Need(t, len(got) == MaxLimit, "%d found", len(got))
	words := x.alternatives(x.newScope(path), strings.Join(question, " "))
	check.That(t, len(words) == maxTerms, "%d words count, want %d", len(words), maxTerms)
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Nothing to see in this sentence. ", 40)
	for _, test := range []struct{ text, question, want string }{
		{"Short text.", "violin", "Short text."},
		{long + "The violin was sold in May. " + long, "violin sold", "The violin was sold in May. Nothing"},
		{"A violin. " + long + "The violin was sold in May. " + long, "violins sold", "The violin was sold in May."},
		{strings.Repeat("木", 900) + "、枝豆。" + strings.Repeat("山", 900), "枝豆", "枝豆"},
	} {
		x, path := line("user: " + test.text)
		sought := terms(x.alternatives(x.newScope(path), test.question))
		got := excerpt(test.text, newStemmer().found(test.text, sought))
		check.That(t, strings.Contains(got, test.want) && len(got) <= excerptBytes && strings.Contains(test.text, got),
			"%q: excerpt %q has no %q", test.question, got, test.want)
	}
}

// Fusion adds 1/(60 + rank) of each ranking that has a message.
func TestFuse(t *testing.T) {
	t.Parallel()
	scores := fuse([]string{"a", "b", "c"}, []string{"c", "d"})
	for what, want := range map[string]float64{"a": 1. / 61, "b": 1. / 62, "c": 1./63 + 1./61, "d": 1. / 62} {
		got := scores[what]
		check.That(t, math.Abs(got-want) <= 1e-12, "%s: %f, want %f", what, got, want)
	}
}

// A vector of another version is of a message that is gone: it says nothing of the one with its id.
func TestVectorsOfOtherVersions(t *testing.T) {
	t.Parallel()
	vector := []float32{1, 0.5}
	x := newIndex()
	ids := []uuid.UUID{uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())}
	for n, id := range ids {
		x.entries = append(x.entries, entry{id: id, parent: int32(n - 1), depth: int32(n), version: tree.Version(n + 1)})
	}
	data := embed.Encode(vector)
	x.vectors[ids[0]] = stored{version: 1, data: data, norm: embed.Norm(data)}
	x.vectors[ids[1]] = stored{version: 7, data: data, norm: embed.Norm(data)}
	near := x.nearest(x.everything(), embed.VectorOf(vector), fusionDepth)
	check.That(t, len(near) == 1 && near[0].number == 0, "near are %+v, want the first alone", near)
}

func TestLookedUp(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"Where are the paintings of violins?": "paintings violins",
		"What is it?":                         "",
		"東京都":                                 "東京 京都",
		"user_id 42 userID":                   "userid user id 42",
		strings.Repeat("a1b2c3d4 ", 100):      "a1b2c3d4",
		"one1 two22 three333 four4444 five55555 six666666 seven7 eight88 nine999 ten1010 eleven11 twelve1212 thirteen13 fourteen14 fifteen15 sixteen16 xx1": "twelve1212 thirteen13 fourteen14 six666666 fifteen15 sixteen16 five55555 four4444 eleven11 three333 eight88 nine999 ten1010 seven7 two22 one1",
	} {
		var got []string
		for _, t := range lookedUp(question) {
			got = append(got, t.text)
		}
		slices.Sort(got)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		check.That(t, slices.Equal(got, wanted), "%.60q: %q, want %q", question, got, wanted)
	}
}

// A tenant's question weighs words over all conversations: here "violin" is common and "tulip" rare.
func TestTenantsWordsHaveCommonWeights(t *testing.T) {
	t.Parallel()
	store := NewStore()
	for i := range 5 {
		c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
		for j := range 6 {
			word := []string{"tulip", "violin"}[min(i+j/5, 1)]
			check.Must(store.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":"user","content":"The %s is sold."}`, word))}))(t)
		}
	}
	a, err := New(0).RecallTenant(t.Context(), store, Question{Query: "violin tulip", Limit: 6})
	check.That(t, err == nil && len(a.Hits) == 6 && a.Searched == 30 &&
		!strings.Contains(string(a.Hits[0].Message.Body), "violin") && !strings.Contains(string(a.Hits[4].Message.Body), "violin"),
		"%+v, %v", a, err)
}

// However many conversations have the words, some are asked, with a bound on their messages.
func TestTenantIsBounded(t *testing.T) {
	t.Parallel()
	store := NewStore()
	for range 2 * maxAsked {
		c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
		check.Must(store.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"The violin is sold."}`))}))(t)
	}
	s := New(0)
	a, err := s.RecallTenant(t.Context(), store, Question{Query: "Where is the violin?", Limit: MaxLimit})
	check.That(t, err == nil && a.Searched == maxAsked && len(a.Hits) == maxAsked && s.Stats().Conversations == maxAsked,
		"%d hits of %d, %+v, %v", len(a.Hits), a.Searched, s.Stats(), err)
	check.Must(Database().Exec(t.Context(), "update conversations set message_count = $1 where tenant_id = $2", maxAskedMessages, store.TenantID()))(t)
	a, err = New(0).RecallTenant(t.Context(), store, Question{Query: "Where is the violin?", Limit: MaxLimit})
	check.That(t, err == nil && a.Searched == 1, "conversations of %d messages each: %d searched, %v", maxAskedMessages, a.Searched, err)
}

func fill(c *conversation, messages int) {
	parent := uuid.Nil
	for i := range messages {
		text := textOf(fmt.Sprintf("user: word%d word%d and more of it", i, i/2), i, parent)
		if _, err := c.add(text, &allowance{bytes: mostRead}); err != nil {
			panic(err)
		}
		parent = text.ID
	}
}

// The conversation that wasn't asked about for longest goes first, and all that stay are below the bound.
func TestCacheDropsOldest(t *testing.T) {
	t.Parallel()
	const each = 50
	probe := newConversation(key{})
	fill(probe, each)
	one := probe.bytes()
	c := newCache(3*one + one/2)
	keys := make([]key, 5)
	use := func(i int) *conversation {
		conv := c.get(keys[i])
		if conv.bytes() == conversationBytes {
			fill(conv, each)
		}
		c.used(conv)
		return conv
	}
	for i := range keys {
		keys[i] = key{"t", uuid.UUID{15: byte(i + 1)}}
	}
	for _, i := range []int{0, 1, 2, 0, 3} {
		use(i)
	}
	for i, want := range []bool{true, false, true, true, false} {
		_, got := c.byKey[keys[i]]
		check.That(t, got == want, "conversation %d is there: %v, want %v", i, got, want)
	}
	check.That(t, c.bytes == 3*one && len(c.byKey) == c.recent.Len(), "%d bytes are counted for %d conversations of %d", c.bytes, c.recent.Len(), one)
	// One that takes more than all may is dropped after it was used.
	big := c.get(keys[4])
	fill(big, 20*each)
	c.used(big)
	_, there := c.byKey[keys[4]]
	check.That(t, !there && c.recent.Len() == 3 && c.bytes == 3*one,
		"%d conversations and %d bytes stay after one that is too large", c.recent.Len(), c.bytes)
	c.used(big) // of another question, done later
	check.That(t, c.bytes == 3*one, "%d bytes are counted of what was dropped", c.bytes)
}

// Text that can't be read as it should be is taken as it is.
func TestAnyBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"user","content":[{"type":"text","text":"violin"},{"type":"image_url","image_url":{"url":"x"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"sell","arguments":"{\"what\":\"violin\"}"}}]}`,
		`{"role":"assistant","refusal":"No violin."}`,
		`{"role":"tool","tool_call_id":"1","content":"violin sold"}`,
	} {
		x := newIndex()
		read(x, tree.MessageText{ID: uuid.UUID{1}, Role: tree.RoleUser, Body: []byte(body)})
		got := order(x, []int32{0}, "violins")
		check.That(t, len(got) == 1, "%s is not found", body)
	}
}
