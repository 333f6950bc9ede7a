package formattest

import (
	"fmt"
	"io"
	"strings"

	"github.com/coppice-chat/coppice/transfer/format"
)

// A Sample says how to write files of a format with one conversation each:
// Before, then elements with Between between them, then After. The suite makes
// files of every size and shape from it. Each field is a format string of package
// fmt, or plain text.
type Sample struct {
	Before, Between, After string

	Element string // a message with the id %[1]d below %[2]d, and %[3]s beside the rest
	Text    string // a message whose text is %s
	Blocks  string // a message of several blocks, %s
	Block   string // one of them, with the id %[1]d
	Calls   string // one that calls a tool; "" where messages have none

	// Nested opens a message with the id %[1]d around others, which NestedEnd
	// closes; "" where messages don't stand in each other.
	Nested, NestedEnd string

	Weight int // as how many messages one counts, by the memory that it takes; 0 is 1
}

// empty is an element that says nothing.
func (s Sample) empty() string {
	if strings.HasPrefix(s.Element, `"`) {
		return `"n":{}`
	}
	return "{}"
}

// file is a file of so many bytes, about, of what each makes: the first is 1.
func (s Sample) file(size int, each func(i int) string) io.Reader {
	i, done := 0, 0
	return &generated{next: func() string {
		switch {
		case i < 0:
			return ""
		case i > 0 && done >= size:
			i = -1
			return s.After
		}
		if i++; i == 1 {
			return s.Before + each(1)
		}
		return s.Between + each(i)
	}, done: &done}
}

// shapes are the conversations by which memory is measured: each costs the
// most memory for its bytes in some way.
func (s Sample) shapes(size int) map[string]io.Reader {
	list := func(message, one string) io.Reader {
		before, after, _ := strings.Cut(message, "%s")
		in := Sample{Before: s.Before + before, Between: ",", After: after + s.After}
		return in.file(size, func(i int) string { return numbered(one, i) })
	}
	pad := func(to int) string {
		return fmt.Sprintf(`,"pad":"%s"`, strings.Repeat("x", max(to-len(fmt.Sprintf(s.Element, 100_000, 99_999, `,"pad":""`)), 0)))
	}
	long, escaped := pad(max(s.Weight, 1)*format.BytesPerMessage), strings.Repeat(`a\n\"`, 1000)
	plain := strings.Repeat("a b ", 1000)
	all := map[string]io.Reader{
		"many elements that say nothing": s.file(size, func(int) string { return s.empty() }),
		"many tiny messages":             s.file(size, func(i int) string { return fmt.Sprintf(s.Element, i, i-1, "") }),
		"as many messages as may be":     s.file(size, func(i int) string { return fmt.Sprintf(s.Element, i, i-1, long) }),
		"one huge text":                  s.long(size, plain),
		"one huge text with escapes":     s.long(size, escaped),
		"deep nesting": s.file(size, func(i int) string {
			return fmt.Sprintf(s.Element, i, i-1, `,"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
		}),
		"too deep nesting": s.file(size, func(i int) string {
			return fmt.Sprintf(s.Element, i, i-1, `,"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000))
		}),
		"many blocks in one message":  list(s.Blocks, s.Block),
		"many members in one message": s.file(size, func(int) string { return fmt.Sprintf(s.Element, 1, 0, ","+members(size)) }),
		"many times the same name":    s.file(size, func(i int) string { return fmt.Sprintf(s.Element, 1, 0, "") }),
	}
	if s.Calls != "" {
		all["many calls in one message"] = list(s.Blocks, s.Calls)
	}
	if s.Nested != "" {
		const depth = 4000
		all["messages in each other"] = s.file(size, func(i int) string {
			var b strings.Builder
			for d := range depth {
				b.WriteString(numbered(s.Nested, i*depth+d))
			}
			return b.String() + strings.Repeat(s.NestedEnd, depth)
		})
	}
	return all
}

// long is a file of one message whose text is so long.
func (s Sample) long(size int, piece string) io.Reader {
	before, after, _ := strings.Cut(s.Text, "%s")
	in := Sample{Before: s.Before + before, After: after + s.After}
	return in.file(size, func(int) string { return piece })
}

func numbered(format string, i int) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, i)
}

func members(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	return b.String() + `"z":0`
}

// generated reads what next makes, until that is "".
type generated struct {
	next func() string
	rest string
	done *int
}

func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		if g.rest = g.next(); g.rest == "" {
			return 0, io.EOF
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	*g.done += n
	return n, nil
}
