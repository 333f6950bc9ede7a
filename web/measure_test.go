package web_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// measures skips what only measures, unless COPPICE_MEASURE is set.
func measures(t *testing.T) {
	t.Helper()
	if os.Getenv("COPPICE_MEASURE") == "" {
		t.Skip("measures: set COPPICE_MEASURE=1")
	}
}

// quantiles are the median and the 95th percentile.
func quantiles(all []float64) (median, most float64) {
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*95/100]
}

// longAnswer is a text of some 50,000 tokens: prose, lists, tables, code.
func longAnswer() string {
	var b strings.Builder
	for i := 0; b.Len() < 215_000; i++ {
		fmt.Fprintf(&b, "## Part %d\n\nA hedge that is **cut** to the ground grows again from its roots, and `stool` is the word for what stays. ", i)
		b.WriteString(strings.Repeat("The new stems are straight, and there are more of them than before. ", 6))
		b.WriteString("\n\n- hazel, which is cut every seven years\n- willow, every year\n\n| tree | years |\n|---|---|\n| lime | 20 |\n| ash | 12 |\n\n")
		if i%4 == 0 {
			b.WriteString("```go\n" + strings.Repeat("func grow(stool *Stool) error { return stool.Shoot(time.Now()) }\n", 30) + "```\n\n")
		}
	}
	return b.String()
}

// TestMeasureStream streams 50,000 tokens in 20 seconds and counts the frames.
func TestMeasureStream(t *testing.T) {
	measures(t)
	model := newPuppet()
	s := newSite(t, model)
	b := newTab(t, s, "/")
	b.shows("A conversation is a tree.")
	b.send("Tell me all.")
	b.until(`document.querySelector('.live')`)
	eval[any](b, `{
		window.frames_ = []
		let last = performance.now()
		const step = now => { window.frames_.push(now - last); last = now; if (!window.over) requestAnimationFrame(step) }
		requestAnimationFrame(step)
	}`)
	text := longAnswer()
	begin := time.Now()
	for i := 0; i < len(text); i += 86 { // some 20 tokens
		model.say(text[i:min(i+86, len(text))])
		time.Sleep(time.Until(begin.Add(20 * time.Second * time.Duration(i) / time.Duration(len(text)))))
	}
	b.until(`document.querySelector('.live .prose')?.innerText.length > 150000`)
	b.until(`(window.over = true)`)
	took := time.Since(begin)
	model.say(end)
	frames := eval[[]float64](b, `window.frames_`)
	median, most := quantiles(frames)
	t.Logf("%d characters in %.1f s: %.0f frames a second, a frame takes %.0f ms in the median and %.0f at most in 95 of 100", len(text), took.Seconds(), float64(len(frames))/took.Seconds(), median, most)
	b.until(`!document.querySelector('.live')`)
}

// TestMeasureOpening opens conversations of 10,000 messages, deep and wide, and
// tells how long it takes until the first message can be read.
func TestMeasureOpening(t *testing.T) {
	measures(t)
	s := newSite(t)
	deep, _ := s.bulk("Deep", 10_000, func(i int) (int, string) { return i - 1, fmt.Sprintf("Message %d", i) })
	wide, leaves := s.bulk("Wide", 10_000, func(i int) (int, string) { return min(i-1, 0), fmt.Sprintf("Message %d", i) })
	b := newTab(t, s, "/")
	b.shows("Deep")
	b.atStart(`new MutationObserver((_, observer) => {
		if (!document.querySelector('.message[data-id]')) return
		observer.disconnect()
		requestAnimationFrame(() => setTimeout(() => { window.opened = performance.now() }))
	}).observe(document, { childList: true, subtree: true })`)
	for name, path := range map[string]string{"deep": "/c/" + deep.String(), "wide": fmt.Sprintf("/c/%s/%s", wide, leaves[5000])} {
		var times []float64
		for range 9 {
			b.do(chromedp.Navigate(s.url + path))
			b.until(`window.opened`)
			times = append(times, eval[float64](b, `window.opened`))
			b.until(`document.querySelector('.map-item')`)
		}
		median, most := quantiles(times)
		t.Logf("10,000 messages, %s: the first message after %.0f ms in the median, %.0f at most", name, median, most)
	}
}

// TestMeasureSwitch switches among 3,000 siblings.
func TestMeasureSwitch(t *testing.T) {
	measures(t)
	s := newSite(t)
	id, ids := s.bulk("Three thousand", 3001, func(i int) (int, string) { return min(i-1, 0), fmt.Sprintf("Message %d", i) })
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, ids[1500]))
	b.until(`document.querySelector('.message.last .siblings') && document.querySelector('.map-item')`)
	times := eval[[]float64](b, `(async () => {
		const times = []
		for (let i = 0; i < 25; i++) {
			const begin = performance.now(), before = document.querySelector('.message.last').dataset.id
			document.querySelector('.message.last .siblings button:last-of-type').click()
			await new Promise(done => {
				const look = () => {
					const now = document.querySelector('.message.last')?.dataset.id
					now && now !== before ? setTimeout(done) : requestAnimationFrame(look)
				}
				look()
			})
			times.push(performance.now() - begin)
			await new Promise(done => setTimeout(done, 300))
		}
		return times
	})()`)
	median, most := quantiles(times)
	t.Logf("3,000 siblings: a switch takes %.0f ms in the median, %.0f at most in 95 of 100", median, most)
}
