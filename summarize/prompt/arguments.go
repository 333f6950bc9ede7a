package prompt

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// newestShare is how many times the usual is shown of the newest call of a tool.
const newestShare = 3

// newestCalls are the ids of each tool's newest call in messages.
func newestCalls(messages []tree.Message) map[string]bool {
	of := map[string]string{}
	for _, m := range messages {
		for _, call := range chat.Read(m.Body).Calls {
			of[call.Name] = call.ID
		}
	}
	newest := make(map[string]bool, len(of))
	for _, id := range of {
		newest[id] = true
	}
	return newest
}

// cutArguments shortens a call's arguments to about limit characters. Of JSON,
// which a model's arguments need not be, each string is cut in its middle, so that
// no member is lost before another one is.
func cutArguments(arguments string, limit int) string {
	const large = 1 << 20
	var b bytes.Buffer
	if len(arguments) > large || json.Compact(&b, []byte(arguments)) != nil {
		return CutMiddle(arguments, limit)
	}
	arguments = b.String()
	const least = 60 // characters of a string that tell anything
	for share := limit; len(arguments) > limit && share >= least; share /= 2 {
		if cut := string(cutStrings(nil, b.Bytes(), share)); len(cut) <= limit || share/2 < least {
			return CutMiddle(cut, 2*limit)
		}
	}
	return CutMiddle(arguments, limit)
}

// cutStrings appends a JSON value with each of its strings cut to limit characters.
func cutStrings(dst []byte, value json.RawMessage, limit int) []byte {
	switch value[0] {
	case '"':
		var s string
		if json.Unmarshal(value, &s) != nil {
			return append(dst, value...)
		}
		return chat.AppendString(dst, CutMiddle(s, limit))
	case '{':
		members := chat.Members(value)
		for i := range members {
			members[i].Value = cutStrings(nil, members[i].Value, limit)
		}
		return chat.AppendObject(dst, members)
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil {
			return append(dst, value...)
		}
		dst = append(dst, '[')
		for i, e := range elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = cutStrings(dst, e, limit)
		}
		return append(dst, ']')
	}
	return append(dst, value...)
}
