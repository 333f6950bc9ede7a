package digest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// BenchmarkDigest makes the digest of about 100,000 tokens in eight languages.
func BenchmarkDigest(b *testing.B) {
	const size = 400_000 // bytes
	files, err := filepath.Glob("testdata/chats/*.txt")
	if err != nil || len(files) == 0 {
		b.Fatal(files, err)
	}
	in := prompt.Input{TargetTokens: 4000}
	for n, bytes := 0, 0; bytes < size; n++ {
		text := check.Must(os.ReadFile(files[n%len(files)]))(b)
		bytes += len(text)
		anew := strings.NewReplacer(". ", fmt.Sprintf(" %d. ", n), "。", fmt.Sprintf("%d。", n)) // what was said before costs nothing
		in.Fold = append(in.Fold, chatOf(anew.Replace(strings.TrimSpace(string(text))))...)
	}
	counter := tokens.O200k()
	for b.Loop() {
		extract(in, counter)
	}
}
