package digest

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

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
	if index := indexOf(p.index()); !strings.HasPrefix(index, " wood_1( Coppice-17") {
		t.Errorf("the index is %q", index)
	}
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
	if index := indexOf(p.index()); index != " 改到15点开" {
		t.Errorf("it is %q", index)
	}
}

// An index keeps facts of several words whole through a merge.
func TestIndexReadsItself(t *testing.T) {
	t.Parallel()
	r := newReader(prompt.Input{}, ones{}, 1000)
	r.readPrior("Extract of 3 earlier messages, made without a language model.\n\n" + indexHeading + "\n" + indexLine + ` 6:30 "St. Moritz" 1931 Lerwick Bodø harbour lantern`)
	var got []string
	for _, it := range r.items {
		got = append(got, it.text)
	}
	if want := `6:30|"St. Moritz"|1931|Lerwick|Bodø|harbour|lantern`; strings.Join(got, "|") != want {
		t.Errorf("it reads %q", got)
	}
}
