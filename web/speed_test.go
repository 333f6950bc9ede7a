package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// BenchmarkOpen opens a conversation of 10,000 messages by a click in the list, and tells
// the milliseconds until its last message is painted.
func BenchmarkOpen(b *testing.B) {
	s := newSite(b)
	other, _ := s.conversation("Short", "Hello?", "Hello.")
	long, ids := s.bulk("Long", 10_000, func(i int) (int, string) {
		return i - 1, fmt.Sprintf("Message %d. %s", i, strings.Repeat("It has some text, and now and then **more** of it. ", 1+i%7))
	})
	tab := newTab(b, s, "/c/"+other.String())
	var opened float64
	for b.Loop() {
		tab.until(`document.querySelector('.title')?.innerText === 'Short' && document.querySelector('.entry a[href*="` + long.String() + `"]')`)
		opened += eval[float64](tab, `new Promise(done => {
			const before = performance.now()
			const look = () => document.querySelector($1) ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - before))) : requestAnimationFrame(look)
			document.querySelector('.entry a[href*="'+$2+'"]').click()
			look()
		})`, row(ids[len(ids)-1]), long.String())
		tab.click(".entry a", "Short")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(opened/float64(b.N), "ms/open")
}

// BenchmarkStream streams an answer of about 50,000 tokens in 20 seconds, and tells how
// many frames a second the page painted, and the longest pause between two, in all and
// from the last tenth on to a second after the end.
func BenchmarkStream(b *testing.B) {
	const letters, seconds = 240_000, 20
	p := newPuppet()
	s := newSite(b, p)
	id, _ := s.conversation("Stream", "Hello?", "Hello.")
	tab := newTab(b, s, "/c/"+id.String())
	tab.shows("Hello.")
	words := strings.Fields("A coppice is a wood that is cut to the ground every few years, so that many stems grow from each stool. The *stools* of hazel and `ash` live for centuries.")
	var pieces []string
	for i := 0; len(strings.Join(pieces, "")) < letters; i++ {
		switch {
		case i%40 == 9:
			pieces = append(pieces, "\n\n", "```go\n", "func cut(w Wood) {\n", "\treturn w.Stems(", fmt.Sprint(i), ")\n", "}\n", "```\n\n")
		case i%40 == 19:
			pieces = append(pieces, "\n\n", "- one", " thing\n", "- another", " thing\n\n")
		case i%10 == 4:
			pieces = append(pieces, "\n\n")
		}
		for _, w := range words {
			pieces = append(pieces, w+" ")
		}
	}
	eval[any](tab, `{
		window.painted = []
		const frame = now => (window.painted.push(now), requestAnimationFrame(frame))
		requestAnimationFrame(frame)
	}`)
	for b.Loop() {
		tab.click(".composer textarea", "")
		tab.keys("Tell me more.")
		tab.keys(kb.Enter)
		tab.until(`document.querySelector('.live')`)
		begin := time.Now()
		for i, piece := range pieces {
			if i%50 == 0 {
				time.Sleep(time.Until(begin.Add(time.Duration(i) * seconds * time.Second / time.Duration(len(pieces)))))
			}
			p.say(piece)
		}
		p.say(end)
		took := float64(time.Since(begin).Milliseconds())
		tab.until(`document.querySelector('.message.last.ready')`)
		time.Sleep(time.Second)
		told := eval[struct{ Rate, Pause, End float64 }](tab, `(() => {
			const end = performance.now(), all = window.painted.filter(t => t > end - 1000 - $1), gaps = all.slice(1).map((t, i) => [all[i], t - all[i]])
			return { Rate: all.length / (end - all[0]) * 1000, Pause: Math.max(...gaps.map(g => g[1])), End: Math.max(...gaps.filter(g => g[0] > end - 1000 - $1 / 10).map(g => g[1])) }
		})()`, took)
		b.ReportMetric(told.Rate, "frames/s")
		b.ReportMetric(told.Pause, "ms-pause")
		b.ReportMetric(told.End, "ms-pause-at-end")
	}
	b.ReportMetric(0, "ns/op")
}
