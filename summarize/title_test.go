package summarize

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

func TestTitleOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("hazel ", 20)
	for want, bodies := range map[string][]string{
		"What is a coppice?":                {`{"role":"system","content":"Mind."}`, `{"role":"user","content":"\n What is  a\tcoppice?\nBe brief."}`, `{"role":"user","content":"Other"}`},
		"plan.pdf":                          {`{"role":"user","content":[` + string(chat.AttachmentPart([32]byte{}, "plan.pdf", false).Encode()) + `]}`},
		"":                                  {`{"role":"assistant","content":"Hello"}`, `{"role":"user","content":"  "}`, `{"role":"user","content":"Late"}`},
		strings.TrimSpace(long[:60]) + "…":  {`{"role":"user","content":"` + long + `"}`},
		"What does go vet say of my hedge?": {`{"role":"user","content":"**What** does ` + "`go vet`" + ` say of [my hedge](https://example.org/hedge)?"}`},
		"Notes":                             {`{"role":"user","content":"---\n\n# Notes\n\nA hedge."}`},
		"x := 1":                            {`{"role":"user","content":"` + "```go\\nx := 1\\n```" + `"}`},
		"***":                               {`{"role":"user","content":"***\n---"}`},
	} {
		var said []*chat.Message
		for _, b := range bodies {
			said = append(said, chat.Read([]byte(b)))
		}
		if got := TitleOf(said...); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever is said, its beginning can be stored as a title.
func TestTitleOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.Marshal(map[string]string{"role": "user", "content": rapid.String().Draw(t, "text")})
		if err != nil {
			t.Fatal(err)
		}
		title := TitleOf(chat.Read(body))
		if utf8.RuneCountInString(title) > titleLength+1 || len(title) > tree.MaxTitleBytes || strings.ContainsAny(title, "\n\x00\x1b") || !utf8.ValidString(title) {
			t.Errorf("%q", title)
		}
	})
}
