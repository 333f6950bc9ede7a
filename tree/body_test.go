package tree

import (
	"strings"
	"testing"
)

func BenchmarkParseBody(b *testing.B) {
	for name, body := range map[string]string{
		"short": `{"role":"user","content":"A message of some length, as people write them to a model: neither a word nor a page."}`,
		"long":  `{"role":"assistant","content":"` + strings.Repeat(`A paragraph of some length, as models write them.\n`, 20) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parseBody([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
