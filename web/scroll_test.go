package web_test

import (
	"github.com/google/uuid"
)

// showMessage scrolls to the message at a depth of the branch. Rows that weren't
// rendered yet have a height that is guessed, so it goes step by step.
func (b *tab) showMessage(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`new Promise(done => {
		const list = document.querySelector('.transcript')
		const found = document.querySelector($1)
		const top = found?.getBoundingClientRect().top
		const atTop = list.scrollTop < 1, atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 1
		if (found && (Math.abs(top - 200) < 2 || atTop && top < 200 || atEnd && top > 200)) return done(true)
		if (found) list.scrollTop += top - 200
		else {
			const shown = [...document.querySelectorAll('.message[aria-posinset]')]
			const first = $2 + 1 - shown.at(0)?.ariaPosInSet, last = $2 + 1 - shown.at(-1)?.ariaPosInSet
			if (first < 0) list.scrollTop += first * 136 + Math.min(0, shown.at(0).getBoundingClientRect().top + 600)
			else if (last > 0) list.scrollTop += last * 136 + Math.max(0, shown.at(-1).getBoundingClientRect().bottom - 600)
		}
		requestAnimationFrame(() => setTimeout(() => done(false), 60))
	})`, row(message), depth)
}

// scroll has a script move the transcript, and waits until the movement is over,
// for the page, too: that takes it a moment after the last step.
func (b *tab) scroll(script string, args ...any) {
	b.t.Helper()
	eval[any](b, `new Promise(done => {
		const list = document.querySelector('.transcript')
		let timer
		const wait = () => { clearTimeout(timer); timer = setTimeout(done, 300) }
		list.addEventListener('scroll', wait)
		`+script+`
		requestAnimationFrame(() => requestAnimationFrame(wait)) // by then, a step was told
	})`, args...)
}

// render scrolls until the message at a depth of the branch is on the page, in
// view or near it.
func (b *tab) render(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`(() => {
		if (document.querySelector($1)) return true
		const list = document.querySelector('.transcript')
		const shown = [...document.querySelectorAll('.message[aria-posinset]')]
		const first = shown.at(0)?.ariaPosInSet - 1
		list.scrollTop += $2 < first ? shown.at(0).getBoundingClientRect().top - 400 : shown.at(-1).getBoundingClientRect().bottom - 400
	})()`, row(message), depth)
}
