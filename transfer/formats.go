package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/chatbotui"
	"github.com/coppice-chat/coppice/transfer/format/chatbox"
	"github.com/coppice-chat/coppice/transfer/format/chatgpt"
	"github.com/coppice-chat/coppice/transfer/format/claude"
	"github.com/coppice-chat/coppice/transfer/format/claudecode"
	"github.com/coppice-chat/coppice/transfer/format/cline"
	"github.com/coppice-chat/coppice/transfer/format/codex"
	"github.com/coppice-chat/coppice/transfer/format/copilot"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/transfer/format/deepseek"
	"github.com/coppice-chat/coppice/transfer/format/gemini"
	"github.com/coppice-chat/coppice/transfer/format/grok"
	"github.com/coppice-chat/coppice/transfer/format/librechat"
	"github.com/coppice-chat/coppice/transfer/format/llamacpp"
	"github.com/coppice-chat/coppice/transfer/format/lmstudio"
	"github.com/coppice-chat/coppice/transfer/format/lobechat"
	"github.com/coppice-chat/coppice/transfer/format/messages"
	"github.com/coppice-chat/coppice/transfer/format/oasst"
	"github.com/coppice-chat/coppice/transfer/format/openwebui"
	"github.com/coppice-chat/coppice/transfer/format/pi"
	"github.com/coppice-chat/coppice/transfer/format/sillytavern"
	"github.com/coppice-chat/coppice/transfer/format/sweagent"
	"github.com/coppice-chat/coppice/transfer/format/taubench"
)

// All returns every format that Import reads. A file is of the format that keeps
// most of a sample of it, and of several of the first. A new format gets its line
// here.
func All() []format.Format {
	return []format.Format{
		chatgpt.Format{},
		claude.Format{},
		librechat.Format{},
		openwebui.Format{},
		sweagent.Format{},
		chatbotui.Format{},
		oasst.Format{},
		coppice.Format{},
		codex.Format{},
		claudecode.Format{},
		pi.Format{},
		taubench.Format{},
		deepseek.Format{},
		grok.Format{},
		gemini.Format{},
		sillytavern.Format{},
		llamacpp.Format{},
		lmstudio.Format{},
		chatbox.Format{},
		lobechat.Format{},
		copilot.Format{},
		cline.Format{},
		messages.Format{},
	}
}

// Formats lists the names of the formats that Import reads.
func Formats() []string { return namesOf(All()) }

func namesOf(formats []format.Format) (names []string) {
	for _, f := range formats {
		names = append(names, f.Name())
	}
	return names
}

// A file is recognized by a sample of its first bytes: by as few as give a message,
// and at most by so many.
const (
	headBytes    = 64 << 10
	maxHeadBytes = 4 << 20
)

// recognize reads as much of r as it needs to tell the format, or to find that
// it can't. A name of a format tells by itself. member names the list in the
// file's one object in which the conversations stand; "" for the file itself.
func recognize(ctx context.Context, r io.Reader, name string, formats []format.Format) (head []byte, f format.Format, member string, err error) {
	if name != "" {
		i := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name() == name })
		if i < 0 {
			return nil, nil, "", fault.New(fault.Invalid, CodeFormat, "", "%q is no format; there are %s", fault.Clip(name), strings.Join(namesOf(formats), ", "))
		}
		formats = formats[i : i+1]
	}
	for size := headBytes; ; size *= 8 {
		was := len(head)
		head = append(make([]byte, 0, size), head...)[:size]
		n, readErr := io.ReadFull(r, head[was:])
		head = head[:was+n]
		ended := errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) && !fault.Refused(readErr)
		switch {
		case readErr != nil && !ended && !fault.Refused(readErr):
			return nil, nil, "", readErr
		case readErr != nil && len(bytes.TrimSpace(head)) == 0:
			return nil, nil, "", refusedOr(readErr, fault.New(fault.Invalid, CodeEmpty, "", "the file is empty"))
		}
		sample := format.SampleOf(head)
		trials := tryAll(ctx, sample, formats)
		best := bestOf(trials)
		// A larger sample would cost too much to look into.
		if size <= 8*headBytes && (best.isList() || best.weight() == 0) {
			best = bestOf(append([]trial{best}, tryInside(ctx, sample, formats)...))
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, "", context.Cause(ctx)
		case best.weight() > 0 || name != "":
			return head, best.format, best.member, nil
		case readErr != nil || size >= maxHeadBytes:
			return nil, nil, "", refusedOr(readErr, unknown(sample, trials, readErr != nil))
		}
	}
}

// refusedOr is the error of a reader that can't unpack a file further, or else the
// other.
func refusedOr(err, other error) error {
	if fault.Refused(err) {
		return err
	}
	return other
}

// A trial is what a format makes of a sample.
type trial struct {
	format   format.Format
	member   string
	messages int // that have a role and say something
	said     int // bytes that they say
	chats    int // conversations that have them
	nodes    int // of which no message that says something came
	own      bool
	why      map[string]int // that nodes gave no message
}

// bestOf is the trial that keeps most, and of several the first. messages, which keeps
// the marks of a program in the text, goes behind a format that keeps as many messages.
func bestOf(trials []trial) trial {
	most := func(a, b trial) int { return cmp.Compare(a.weight(), b.weight()) }
	best := slices.MaxFunc(trials, most)
	if best.isList() {
		for _, t := range trials {
			if !t.isList() && t.said > 0 && t.messages >= best.messages && (best.isList() || t.said > best.said) {
				best = t
			}
		}
	}
	return best
}

// isList tells whether the trial is of messages.
func (t trial) isList() bool {
	_, list := t.format.(messages.Format)
	return list
}

// weight is by how much a format claims a sample. messages reads lists of any program,
// and claims half: a format that knows the program keeps what it leaves out.
func (t trial) weight() int {
	switch t.format.(type) {
	case messages.Format:
		return t.said
	case coppice.Format:
		if t.own && t.nodes == 0 { // an export of a conversation without messages
			return 2*t.said + 1
		}
	}
	return 2 * t.said
}

// tryAll reads the sample as each of the formats. One that finds nothing in the file
// itself is given the lists in its object.
func tryAll(ctx context.Context, sample format.Sample, formats []format.Format) (trials []trial) {
	for _, f := range formats {
		best := try(ctx, sample, f, "")
		for _, member := range sample.Lists {
			if best.weight() > 0 && best.chats < 2 {
				break
			}
			t := try(ctx, sample, f, member)
			// Of what reads as well as the file itself the list is read conversation by
			// conversation.
			if t.weight() > best.weight() || t.weight() == best.weight() && t.chats == best.chats && (t.chats > 1 || best.nodes == 0 && t.nodes > 0) {
				best = t
			}
		}
		trials = append(trials, best)
	}
	return trials
}

// tryInside reads what stands a few levels inside the sample as each of the formats
// that know a program. messages looks there by itself.
func tryInside(ctx context.Context, sample format.Sample, formats []format.Format) (trials []trial) {
	const levels = 5
	for _, f := range formats {
		for n := range levels {
			if t := (trial{format: f}); !t.isList() {
				trials = append(trials, try(ctx, sample, f, strings.Repeat(format.Inside, n+1)))
			}
		}
	}
	return trials
}

func try(ctx context.Context, sample format.Sample, f format.Format, member string) trial {
	t := trial{format: f, member: member, why: map[string]int{}}
	in := format.NewInput(ctx, bytes.NewReader(sample.Text), func(format.Note) {})
	in.Member = member
	seen := map[string]bool{}
	_ = f.Parse(in, func(c format.Conversation) error { // what it says of the sample, it will say of the file
		messages, said := format.Said(&c, seen)
		if said == 0 && c.TooDense() != "" { // for the whole file to say
			said = 1
		}
		t.messages, t.said, t.own = t.messages+messages, t.said+said, t.own || c.OwnIDs
		if messages > 0 {
			t.chats++
		}
		of := c.Tally()
		t.nodes += max(len(c.Messages)-messages, of.LeftOut)
		for _, n := range c.Notes {
			if n.Action == format.LeftOut && n.Kind != format.KindMetadata {
				t.why[n.Detail]++
			}
		}
		return in.Stopped()
	})
	return t
}

// unknown says what stands in a file of no format, and which formats came near.
func unknown(sample format.Sample, trials []trial, ended bool) error {
	what, near := sample.Describe(), []string(nil)
	if ended && !sample.Whole {
		what += ", and is cut off at its end"
	}
	for _, t := range trials {
		if t.nodes == 0 || len(near) == 3 {
			continue
		}
		why := "none has a role and says something"
		for _, detail := range slices.Sorted(maps.Keys(t.why)) {
			if t.why[detail] > t.why[why] {
				why = detail
			}
		}
		near = append(near, fmt.Sprintf("%s, which finds %s and no message (%s)", t.format.Name(), format.Counted(t.nodes, "node"), format.Clip(why)))
	}
	text := fmt.Sprintf("no format finds a message in the file, which is %s", what)
	if len(near) > 0 {
		text += ". Near came " + strings.Join(near, "; ")
	}
	return fault.New(fault.Invalid, CodeFormat, "", `%s. The formats are %s: export the chat in one of them, or write each message as a line {"role":"user","content":"…"}`, text, strings.Join(namesOf(formatsOf(trials)), ", "))
}

func formatsOf(trials []trial) (formats []format.Format) {
	for _, t := range trials {
		formats = append(formats, t.format)
	}
	return formats
}
