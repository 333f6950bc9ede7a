package messages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Write writes a branch as one line {"messages": [...]}, an example for fine-tuning:
// chat-completions messages as they were given, but for attachments, whose names stand
// in for them. One message is held at a time.
func Write(w io.Writer, c tree.Conversation, branch iter.Seq2[tree.Message, error]) (err error) {
	defer fault.Wrap(&err, "messages.Write(%s)", c.ID)
	out := bufio.NewWriter(w)
	before := `{"messages":[`
	for m, err := range branch {
		if err != nil {
			return err
		}
		out.WriteString(before)
		out.Write(bodyOf(m))
		before = ","
	}
	if before != "," {
		return nil // of nothing, an example would be unsound
	}
	out.WriteString("]}\n")
	return out.Flush()
}

func bodyOf(m tree.Message) []byte {
	body := m.Body
	if chat.MayName(body) {
		if said := chat.Read(body); len(said.Attachments()) > 0 {
			for i, p := range said.Parts {
				if _, ok := p.Attachment(); ok {
					said.Parts[i] = chat.TextPart(chat.Shown(said.Parts[i : i+1]))
				}
			}
			body = said.Encode()
		}
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil { // a stored body is JSON
		return body
	}
	return line.Bytes()
}
