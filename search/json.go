package search

import (
	"encoding/json"
	"strconv"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// AppendJSON appends the answer to dst, in the REST API's shape. A message for
// which there was no room has null as its content.
func (a Answer) AppendJSON(dst []byte) []byte {
	dst = tree.AppendID(append(dst, `{"conversation_id":`...), a.ConversationID)
	dst = tree.AppendID(append(dst, `,"head_id":`...), a.HeadID)
	dst = strconv.AppendQuote(append(dst, `,"scope":`...), string(a.Scope))
	dst = strconv.AppendInt(append(dst, `,"searched":`...), int64(a.Searched), 10)
	dst = strconv.AppendInt(append(dst, `,"omitted":`...), int64(a.Omitted), 10)
	if a.Incomplete {
		dst = append(dst, `,"incomplete":true`...)
	}
	if a.Ranking != "" {
		dst = strconv.AppendQuote(append(dst, `,"ranking":`...), string(a.Ranking))
	}
	dst = append(dst, `,"data":[`...)
	for i, h := range a.Hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = h.appendJSON(dst)
	}
	return append(dst, `]}`...)
}

// MarshalJSON returns the JSON of AppendJSON.
func (a Answer) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }

func (h Hit) appendJSON(dst []byte) []byte {
	m := h.Message
	if m.Body == nil {
		m.Body, _ = json.Marshal(map[string]any{"role": m.Role, "content": nil})
	}
	dst = m.AppendJSON(append(dst, `{"message":`...))
	dst = chat.AppendString(append(dst, `,"excerpt":`...), h.Excerpt)
	dst = strconv.AppendFloat(append(dst, `,"score":`...), h.Score, 'f', 4, 64)
	dst = strconv.AppendBool(append(dst, `,"on_branch":`...), h.OnBranch)
	dst = strconv.AppendBool(append(dst, `,"folded":`...), h.Folded)
	dst = appendMessages(dst, `,"before":[`, h.Before)
	dst = appendMessages(dst, `,"after":[`, h.After)
	return append(dst, '}')
}

func appendMessages(dst []byte, name string, messages []tree.Message) []byte {
	dst = append(dst, name...)
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.AppendJSON(dst)
	}
	return append(dst, ']')
}
