package normalize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// shorten cuts the largest piece of content so that the body of size bytes
// fits into the store; nil where that can't be done.
func (b *body) shorten(size int) json.RawMessage {
	const mark = 200 // for the mark and what escapes it needs
	over := size - tree.MaxBodyBytes + mark
	raw := b.m["content"]
	if text, ok := format.StringOf(raw); ok {
		b.m["content"] = chat.MustMarshal(cutTo(text, len(chat.AppendString(nil, text))-over))
		return b.fitting()
	}
	parts := b.m.List("content")
	if len(parts) == 0 {
		return nil
	}
	largest := 0
	for i, p := range parts {
		if len(p) > len(parts[largest]) {
			largest = i
		}
	}
	p := format.ObjectOf(parts[largest])
	if p == nil {
		return nil
	}
	if text := p.Str("text"); text != "" {
		p["text"] = chat.MustMarshal(cutTo(text, len(chat.AppendString(nil, text))-over))
		parts[largest] = format.EncodeObject(p)
	} else {
		parts[largest] = chat.TextPart(fmt.Sprintf("[%s of %d bytes left out by the import]", format.Clip(p.Str("type")), len(parts[largest]))).Encode()
	}
	b.m["content"] = encodeList(parts)
	return b.fitting()
}

// fitting gives the body if the store takes its size.
func (b *body) fitting() json.RawMessage {
	if raw := b.encode(); len(raw) <= tree.MaxBodyBytes {
		return raw
	}
	return nil
}

// cutTo cuts s so that its JSON has at most size bytes.
func cutTo(s string, size int) string {
	if size <= 0 {
		return "[text left out by the import]"
	}
	keep := min(size, len(s))
	for {
		cut := cutMiddle(s, keep)
		if len(chat.MustMarshal(cut)) <= size+100 || keep == 0 {
			return cut
		}
		keep -= keep/8 + 1
	}
}

// cutMiddle shortens s to about keep bytes, at the borders of characters, and
// puts a mark where something is missing.
func cutMiddle(s string, keep int) string {
	if len(s) <= keep {
		return s
	}
	head, tail := keep/2, len(s)-keep/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + fmt.Sprintf("\n[… %d bytes cut out by the import …]\n", tail-head) + s[tail:]
}

// encodeList is encode of a list of JSON.
func encodeList(elements []json.RawMessage) json.RawMessage {
	size := 2
	for _, raw := range elements {
		size += len(raw) + 1
	}
	out := bytes.NewBuffer(make([]byte, 0, size))
	out.WriteByte('[')
	for i, raw := range elements {
		if i > 0 {
			out.WriteByte(',')
		}
		_ = json.Compact(out, raw) // valid, as all that is read
	}
	out.WriteByte(']')
	return out.Bytes()
}
