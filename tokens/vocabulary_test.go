package tokens

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// pack writes a vocabulary as unpack reads it.
func pack(t *testing.T, codec tokenizer.Codec) []byte {
	var data []byte
	for rank := uint(0); ; rank++ {
		token, err := codec.Decode([]uint{rank})
		if err != nil {
			break // behind the last rank
		}
		data = binary.AppendUvarint(data, uint64(len(token)))
		data = append(data, token...)
	}
	return zipped(t, data)
}

func zipped(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	w := check.Must(gzip.NewWriterLevel(&b, gzip.BestCompression))(t)
	check.Must(w.Write(data))(t)
	check.NoError(t, w.Close())
	return b.Bytes()
}

// The vocabulary is o200k_base, token for token.
func TestVocabularyIsTheEncodings(t *testing.T) {
	t.Parallel()
	codec := check.Must(tokenizer.Get(tokenizer.O200kBase))(t)
	if *check.Update {
		check.NoError(t, os.WriteFile("o200k_base.gz", pack(t, codec), 0o644))
		t.Skip("written; run the test again without -update")
	}
	v := o200kBase()
	if got := len(v.starts) - 1; got != 199_998 {
		t.Fatalf("%d tokens, want 199,998", got)
	}
	for rank := range uint32(199_998) {
		want := check.Must(codec.Decode([]uint{uint(rank)}))(t)
		if got := v.token(rank); got != want || v.rank(got) != rank {
			t.Fatalf("token %d is %q and has rank %d, want %q", rank, got, v.rank(got), want)
		}
	}
	for _, unknown := range []string{"", "\x00\x01\x02\x03", strings.Repeat("long ", 100)} {
		check.Equal(t, "the rank of "+unknown, v.rank(unknown), none)
	}
}

// A piece is merged as the encoding merges it, whatever it is made of.
func TestMergesAsTheEncoding(t *testing.T) {
	t.Parallel()
	codec := check.Must(tokenizer.Get(tokenizer.O200kBase))(t)
	check := func(t fataler, piece string) {
		want, err := codec.Count(piece)
		if got, _ := o200kBase().count(context.Background(), piece); err != nil || got != want {
			t.Fatalf("%q is merged into %d tokens, by the encoding into %d, %v", piece, got, want, err)
		}
	}
	// Letters of one case are one piece, as are blanks and a run of signs.
	for _, piece := range []string{"a", "aa", "zqxj", strings.Repeat("a", 1000), strings.Repeat("ab", 501), strings.Repeat("=", 333), strings.Repeat(" ", 97), "日本語日本語"} {
		check(t, piece)
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, rapid.StringOfN(rapid.RuneFrom([]rune("abcdeinorstßé日")), 1, 200, -1).Draw(rt, "piece"))
	})
}

// A text that is no UTF-8 counts as if each bad run were a replacement mark.
func TestInvalidTextIsCounted(t *testing.T) {
	t.Parallel()
	if got, want := O200k().Count("a\xff\xfeb"), O200k().Count("a\uFFFDb"); got != want {
		t.Errorf("Count = %d, want %d", got, want)
	}
}

func TestUnpackRefusesBrokenData(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing": nil, "no gzip": []byte("o200k_base"), "cut off": packed[:1000],
		"no token": zipped(t, []byte("\x00")), "a length alone": zipped(t, []byte("\x02a")), "no length": zipped(t, []byte("\xff")),
	} {
		if v, err := unpack(data); err == nil {
			t.Errorf("%s: %d tokens", name, len(v.starts)-1)
		}
	}
}
