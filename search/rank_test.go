package search

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// line builds an index of a branch. A message is "role: text", or
// "role name: text".
func line(messages ...string) (*index, []int32) {
	x := newIndex()
	var path []int32
	parent := uuid.Nil
	for i, m := range messages {
		x.add(textOf(m, i, parent))
		parent = x.entries[i].id
		path = append(path, int32(i))
	}
	for i := 1; i < len(path); i++ {
		x.link(x.entries[i-1].id, int32(i-1))
	}
	return x, path
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
		{"what a user said is better", with("assistant: The violin is sold.", "user: The violin is sold."), "violin", []int{next, at}},
		{"who is named is better", with("user Ada: The violin is sold.", "user Bo: The violin is sold."), "what did Bo do with the violin", []int{next, at}},
		{"greetings are worse", with("user: Violin lessons start on Tuesday at seven near the office.", "user: Violin!"), "violin", []int{at, next}},
		{"the later one is better, else", with("user: The violin is sold.", "user: The violin is sold."), "violin", []int{next, at}},
		{"no word is found", with("user: Tulips."), "zebra", nil},
	} {
		x, path := line(test.messages...)
		got := slices.DeleteFunc(order(x, path, test.question), func(depth int) bool { return depth%(len(filler)+1) != at })
		if len(got) < len(test.want) || !slices.Equal(got[:len(test.want)], test.want) || test.want == nil && got != nil {
			t.Errorf("%s: %v, want %v first", test.rule, got, test.want)
		}
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
	if len(got) != MaxLimit {
		t.Fatalf("%d found", len(got))
	}
	if words := x.alternatives(x.newScope(path), strings.Join(question, " ")); len(words) != maxTerms {
		t.Errorf("%d words count, want %d", len(words), maxTerms)
	}
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
		got := excerpt(newStemmer(), test.text, sought)
		if !strings.Contains(got, test.want) || len(got) > excerptBytes || !strings.Contains(test.text, got) {
			t.Errorf("%q: excerpt %q has no %q", test.question, got, test.want)
		}
	}
}

// Fusion adds 1/(60 + rank) of each ranking that has a message.
func TestFuse(t *testing.T) {
	t.Parallel()
	scores := fuse([]string{"a", "b", "c"}, []string{"c", "d"})
	for what, want := range map[string]float64{"a": 1. / 61, "b": 1. / 62, "c": 1./63 + 1./61, "d": 1. / 62} {
		if got := scores[what]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %f, want %f", what, got, want)
		}
	}
}

// A vector of another version is that of a message which is gone: it says nothing
// of the message that has the id now.
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
	if near := x.nearest(x.everything(), embed.VectorOf(vector), fusionDepth); len(near) != 1 || near[0].number != 0 {
		t.Errorf("near are %+v, want the first alone", near)
	}
}
