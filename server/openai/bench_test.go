package openai_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// BenchmarkFirstToken takes the time from a request to the first piece of its
// answer: of the upstream itself, of a completion that isn't recorded, and of one
// that goes on where a long history ends.
func BenchmarkFirstToken(b *testing.B) {
	a := newAPI(b)
	a.upstream.Otherwise(llmtest.Answer("It is a wood."))
	for _, n := range []int{10, 1000} {
		var history []string
		for i := range n {
			history = append(history, said([]string{"user", "assistant"}[i%2], fmt.Sprintf("message %d of a long history of %d, as people and models write them", i, n)))
		}
		history = history[:len(history)/2*2]
		for _, test := range []struct{ name, url, members string }{
			{"upstream", a.upstream.URL(), ""}, {"passed on", a.url + "/openai/v1", ""}, {"recorded", a.url + "/openai/v1", store},
		} {
			b.Run(fmt.Sprintf("%d messages/%s", n, test.name), func(b *testing.B) {
				var times []time.Duration
				for i := 0; b.Loop(); i++ {
					body := chatBody(`"stream":true,`+test.members, append(history[:len(history):len(history)], said("user", fmt.Sprint("And ", i, "?")))...)
					start := time.Now()
					req, _ := http.NewRequestWithContext(b.Context(), "POST", test.url+"/chat/completions", strings.NewReader(body))
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Authorization", "Bearer "+a.secrets["acme"])
					res, err := http.DefaultClient.Do(req)
					if err != nil || res.StatusCode != http.StatusOK {
						b.Fatal(res, err)
					}
					first := true
					for lines := bufio.NewScanner(res.Body); lines.Scan(); {
						if first && strings.Contains(lines.Text(), `"content":"It`) {
							times = append(times, time.Since(start))
							first = false
						}
					}
					res.Body.Close()
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}
