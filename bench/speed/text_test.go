package speed

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/tree"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	c, again := newCorpus(3, 200), newCorpus(3, 200)
	for _, role := range []tree.Role{tree.RoleUser, tree.RoleAssistant} {
		for i, text := range c.texts[role] {
			if string(text.body) != string(again.texts[role][i].body) {
				t.Fatal("the same seed gives other texts")
			}
			var m struct{ Role, Content string }
			if err := json.Unmarshal(text.body, &m); err != nil || m.Role != string(role) || !strings.HasSuffix(m.Content, ".") {
				t.Fatalf("%s: %v", text.body, err)
			}
		}
	}
	words := c.vocabulary()
	if len(words) != vocabularySize || words[0] != "the" {
		t.Errorf("%d words, the first %q", len(words), words[0])
	}
}
