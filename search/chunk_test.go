package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A stored chunk knows what the chunk knew, and one that was cut off is refused.
func TestChunkIsStoredWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &chunk{}
		hashes := rapid.SliceOfN(rapid.Map(rapid.Uint32Range(0, 1<<keyBits-1), func(n uint32) hash { return hash(n) }), 0, 30)
		for range rapid.IntRange(0, chunkMessages).Draw(t, "messages") {
			c.add(time.UnixMicro(rapid.Int64Range(-1<<50, 1<<60).Draw(t, "at")), hashes.Draw(t, "terms"))
		}
		data := c.encode()
		again, err := decodeChunk(data, len(c.at))
		check.Need(t, err == nil && slices.Equal(again.at, c.at) && slices.Equal(again.keys, c.keys) && slices.Equal(again.masks, c.masks),
			"%+v, %v, want %+v", again, err, c)
		_, words, err := unpack(data, len(c.at))
		check.NoError(t, err)
		sought := append(hashes.Draw(t, "sought"), c.keys[:min(3, len(c.keys))]...)
		slices.Sort(sought)
		want := uint64(0)
		for i, k := range c.keys {
			if slices.Contains(sought, k) {
				want |= c.masks[i]
			}
		}
		got := words.having(sought)
		check.Need(t, got == set(want), "%x have %v, want %x", got, sought, want)
		if cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut"); len(c.at) > 0 {
			_, err := decodeChunk(data[:cut], len(c.at))
			check.Need(t, err != nil, "%d of %d bytes are taken for a chunk", cut, len(data))
		}
	})
}

// A prune empties its chunk's part of a large segment and no other. An empty segment goes.
func TestPruneInLargeSegment(t *testing.T) {
	t.Parallel()
	store, find := NewStore(), New(0)
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	all := make([]tree.NewMessage, 2*chunkMessages)
	for i := range all {
		all[i] = tree.Text(tree.RoleUser, fmt.Sprint("word", i))
	}
	chain := check.Must(store.AppendChain(t.Context(), c.ID, uuid.Nil, all))(t)
	check.NoError(t, find.CatchUp(t.Context(), store))
	check.Must(AddSegments(t.Context(), store, 1))(t)
	for pruned, named := range []string{"word1 word127", "word1", ""} {
		if pruned > 0 {
			check.Must(store.Prune(t.Context(), c.ID, chain.Messages[128-64*pruned].ID))(t)
		}
		for _, word := range []string{"word1", "word127"} {
			sought := query{terms: []*wanted{{hashes: []hash{termOf(word).hash()}}}}
			is := false
			for _, row := range check.Must(store.Index().Segments(t.Context(), sought.buckets()))(t) {
				for _, p := range check.Must(parts(row))(t) {
					is = is || row.Bucket >= tree.LargeSegment.First && p.chunks(row.Bucket, sought.terms[0]) != 0
				}
			}
			check.That(t, is == strings.Contains(named, word), "after %d prunes %q is named: %t", pruned, word, is)
		}
	}
}

// Each message is in one chunk after catching up, and of pruned words nothing is left, also before.
func TestIndexLikeItsMessages(t *testing.T) {
	t.Parallel()
	ctx, find := context.Background(), New(0)
	rapid.Check(t, func(t *rapid.T) {
		store := NewStore()
		ok := func(err error) { check.NoError(t, err) }
		var conversations []uuid.UUID
		gone := map[string]bool{} // words of pruned messages
		words := map[uuid.UUID]string{}
		number := 0
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"new", "append", "append", "append", "prune", "fork", "delete", "follow", "segment"}), 1, 12).Draw(t, "steps")
		for _, step := range append(steps, "append", "segment", "prune") { // a prune of words in a segment is rare otherwise
			switch {
			case step == "new" || len(conversations) == 0:
				c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
				ok(err)
				conversations = append(conversations, c.ID)
			case step == "append":
				id := rapid.SampledFrom(conversations).Draw(t, "in")
				var chain []tree.NewMessage
				for range rapid.SampledFrom([]int{1, 1, 2, 3, 40, 70}).Draw(t, "length") {
					number++
					chain = append(chain, tree.Text(tree.RoleUser, fmt.Sprintf("every word%d", number)))
				}
				stored, err := store.AppendChain(ctx, id, uuid.Nil, chain, tree.AtHead())
				ok(err)
				for i, m := range stored.Messages {
					words[m.ID] = fmt.Sprintf("word%d", number-len(stored.Messages)+1+i)
				}
			case step == "prune" || step == "fork":
				id := rapid.SampledFrom(conversations).Draw(t, "in")
				var ids []uuid.UUID
				ok(store.Index().Versions(ctx, id, func(id uuid.UUID, _ tree.Version) { ids = append(ids, id) }))
				if len(ids) == 0 {
					continue
				}
				slices.Reverse(ids)                               // the oldest first
				at := rapid.IntRange(0, len(ids)-1).Draw(t, "at") // a line: all below goes, too
				if step == "fork" {
					c, _, err := store.Fork(ctx, id, ids[at], tree.NewConversation{})
					ok(err)
					conversations = append(conversations, c.ID)
					continue
				}
				_, err := store.Prune(ctx, id, ids[at])
				ok(err)
				for _, id := range ids[at:] {
					gone[words[id]] = true
				}
			case step == "delete":
				i := rapid.IntRange(0, len(conversations)-1).Draw(t, "which")
				var ids []uuid.UUID
				ok(store.Index().Versions(ctx, conversations[i], func(id uuid.UUID, _ tree.Version) { ids = append(ids, id) }))
				ok(store.DeleteConversation(ctx, conversations[i]))
				for _, id := range ids {
					gone[words[id]] = true
				}
				conversations = slices.Delete(conversations, i, i+1)
			case step == "follow":
				ok(find.CatchUp(ctx, store))
			case step == "segment":
				ok(find.CatchUp(ctx, store)) // else there is hardly a chunk for it
				_, err := AddSegments(ctx, store, 1)
				ok(err)
			}
			checkIndex(ctx, t, store, conversations, gone, false)
		}
		ok(find.CatchUp(ctx, store))
		checkIndex(ctx, t, store, conversations, gone, true)
	})
}

// checkIndex holds the index against the messages; whole tells that it has all.
func checkIndex(ctx context.Context, t *rapid.T, store *tree.Store, conversations []uuid.UUID, gone map[string]bool, whole bool) {
	m, standing := newMaker(), map[string]bool{} // words that some conversation still has: forks copy them
	for _, id := range conversations {
		rows := check.Must(store.Index().ConversationChunks(ctx, 0, 1000, id))(t)
		in := map[uuid.UUID]int{}
		for _, row := range rows {
			for _, id := range row.Messages {
				in[id]++
			}
			if row.Data == nil {
				check.Need(t, !whole, "chunk %d of %s is torn", row.Number, id)
				continue
			}
			again, err := m.make(ctx, store, id, row.Messages)
			check.Need(t, err == nil && len(again) == 1 && bytes.Equal(again[0].encode(), row.Data),
				"chunk %d of %s with %d messages isn't what its messages make (%v)", row.Number, id, len(row.Messages), err)
		}
		messages := 0
		if err := store.Index().Versions(ctx, id, func(id uuid.UUID, _ tree.Version) {
			if messages++; in[id] > 1 || whole && in[id] == 0 {
				t.Fatalf("message %s is in %d chunks", id, in[id])
			}
			delete(in, id)
		}); err != nil || len(in) > 0 {
			t.Fatalf("%d messages of chunks are gone, %v", len(in), err)
		}
		var ids []uuid.UUID
		check.NoError(t, store.Index().Versions(ctx, id, func(id uuid.UUID, _ tree.Version) { ids = append(ids, id) }))
		check.NoError(t, store.Index().Texts(ctx, id, ids, func(text tree.MessageText) error {
			standing[strings.TrimPrefix(chat.Read(text.Body).Text(), "every ")] = true
			return nil
		}))
	}
	var all []int
	for _, l := range []level{small, large} {
		for i := range l.Count {
			all = append(all, l.First+i)
		}
	}
	segments := check.Must(store.Index().Segments(ctx, all))(t)
	for word := range gone {
		if h := termOf(word).hash(); !standing[word] {
			for _, s := range segments {
				read := check.Must(parts(s))(t)
				for _, p := range read {
					check.Need(t, p.chunks(s.Bucket, &wanted{hashes: []hash{h}}) == 0, "segment %s has %q, which is gone", s.ID, word)
				}
			}
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"Don't PANIC, it's 3.5 km!", "don t panic it s 3 5 km"},
		{"user_id = get-users('/etc/hosts')", "user id get users etc hosts"},
		{"Ärger in Zürich", "ärger in zürich"},
		{"ﬁne ﬁsh", "fine fish"},           // compatibility forms
		{"e\u0301te\u0301", "été"},         // combining marks
		{"東京都へ行く", "東京 京都 都へ へ行 行く"},       // pairs of letters
		{"我 喜欢 Go 语言", "我 喜欢 go 语言"},       // one letter alone
		{"コーヒーを飲む", "コー ーヒ ヒー ーを を飲 飲む"},   // the long vowel sign
		{"한국어를", "한국 국어 어를"},               // Korean
		{"ภาษาไทย", "ภา าษ ษา าไ ไท ทย"},   // Thai
		{"ที่นี่", "ที่นี่"},               // marks stay with their letter
		{"हिन्दी में", "हिन्दी में"},       // vowel signs of spaced scripts
		{"Привет, мир", "привет мир"},      // Cyrillic
		{"مرحبا بالعالم", "مرحبا بالعالم"}, // Arabic
		{"a\xffb", "a b"},                                    // not UTF-8
		{"mail@example.org", "mail example org"},             // an address
		{"2024-03-15T10:00", "2024 03 15t10 00"},             // a time
		{"🙂🙂 ok 👍🏽, ❤️", "🙂 🙂 ok 👍 ❤"},                       // emojis, without their colour and form
		{"┌──┐ → ©", ""},                                     // other signs
		{strings.Repeat("x", 300), strings.Repeat("x", 300)}, // no word of a language
	} {
		var got []string
		for _, w := range wordsOf(test.text) {
			got = append(got, w.text)
		}
		check.That(t, strings.Join(got, " ") == test.want, "%q: %q, want %q", test.text, strings.Join(got, " "), test.want)
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"What did you buy for the garden?", "english"},
		{"Was hast du für den Garten gekauft?", "german"},
		{"Qu'est-ce que tu as acheté pour le jardin ?", "french"},
		{"¿Qué compraste para el jardín?", "spanish"},
		{"Che cosa hai comprato per il giardino?", "italian"},
		{"O que você comprou para o jardim?", "portuguese"},
		{"Wat heb je voor de tuin gekocht?", "dutch"},
		{"Vad köpte du till trädgården och varför?", "swedish"},
		{"Что ты купил для сада?", "russian"},
		{"Bahçe için ne aldın, ve neden?", "turkish"},
		{"Mit vettél a kertbe, és miért?", "hungarian"},
		{"Mitä ostit puutarhaan ja miksi se oli niin kallis?", "finnish"},
		{"Ce ai cumpărat pentru grădină și de ce?", "romanian"},
		{"ماذا اشتريت من السوق في هذا اليوم؟", "arabic"},
		{"garden tools", "english"}, // nothing tells
		{"庭のために何を買いましたか", "english"},
		{"Καλημέρα, τι κάνεις;", "english"},
	} {
		check.Equal(t, "the language of "+test.text, languages[languageOf(wordsOf(test.text))].name, test.want)
	}
}

// Words of one stem find each other, with their accents and without.
func TestStems(t *testing.T) {
	t.Parallel()
	s := newStemmer()
	for _, test := range []struct{ language, words string }{
		{"english", "paint painting painted paints"},
		{"english", "user users"},
		{"german", "garten gartens"},
		{"german", "häuser hauser"},
		{"french", "continuer continuation continuez"},
		{"spanish", "corriendo corriendo"},
		{"russian", "книга книги книгу"},
		{"portuguese", "livro livros"},
		{"swedish", "flicka flickor flickorna"},
		{"english", "μήνυμα μηνυμα"}, // no stemmer, but accents
	} {
		l := language(slices.IndexFunc(languages, func(l languageRules) bool { return l.name == test.language }))
		words := strings.Fields(test.words)
		want := s.stem(words[0], l)
		for _, w := range words[1:] {
			got := s.stem(w, l)
			check.That(t, got == want, "%s: %s has the stem %q, and %s %q", test.language, words[0], want, w, got)
		}
	}
}

// A word stands in its text where it says, whatever the text is.
func TestWordsStandWhereTheySay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-zé ]|[ก-๙]|[一-龥]|[ァ-ー]|[가-힣]|\x{301}){0,40}`)).Draw(t, "text")
		s := newStemmer()
		at := 0
		for _, w := range wordsOf(text) {
			check.Need(t, (w.from >= at || w.bigram || w.part) && w.to > w.from && w.to <= len(text) && w.text != "" && utf8.ValidString(w.text),
				"%q: %+v", text, w)
			if at = w.to; w.bigram {
				at = w.from
			}
			for l := range languages {
				check.Need(t, s.stem(w.text, language(l)) != "", "%q has an empty stem in %s", w.text, languages[l].name)
			}
		}
		got := excerpt(text, nil)
		check.Need(t, strings.Contains(text, got) && len(got) <= excerptBytes, "excerpt %q of %q", got, text)
	})
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("filler ", 5000)
	for name, test := range map[string]struct {
		text  string
		terms []string
		holds string
	}{
		"a short text":             {"the quick fox 4", []string{"fox"}, "the quick fox 4"},
		"in the middle":            {filler + "An Oak stands " + filler, []string{"oak"}, "filler An Oak stands filler"},
		"a whole word":             {filler + "soak " + filler + "oak", []string{"oak"}, "filler oak"},
		"most of them together":    {filler + "oak " + filler + "the oak and the ash " + filler, []string{"ash", "oak"}, "the oak and the ash"},
		"another case":             {filler + "ÉLAN vital " + filler, []string{"élan"}, "ÉLAN vital"},
		"without accents":          {filler + "ÉLAN vital " + filler, []string{"elan"}, "ÉLAN vital"},
		"a word with punctuation":  {filler + "see http://a.org/b?c=d " + filler, []string{"a.org/b?c=d", "a.org", "/b?c=d"}, "http://a.org/b?c=d"},
		"none":                     {"begin " + filler, []string{"oak"}, "begin filler"},
		"words without end":        {strings.Repeat("x", 1<<20) + " oak " + strings.Repeat("林", 1<<18), []string{"oak"}, "oak"},
		"bytes that are no letter": {filler + "\u0301oak\u0301 oak " + filler, []string{"oak"}, "oak filler"},
		"nothing":                  {"", []string{"oak"}, ""},
	} {
		q := check.Must(parse(`"`+strings.Join(test.terms, `" or "`)+`"`, allWords))(t)
		got := excerpt(test.text, q.found(sayingOf(test.text)))
		check.That(t, strings.Contains(got, test.holds) && len(got) <= excerptBytes && utf8.ValidString(got),
			"%s: %d bytes: %q, want %q in it", name, len(got), got, test.holds)
	}
}
