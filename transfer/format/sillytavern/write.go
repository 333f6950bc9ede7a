package sillytavern

import (
	"bufio"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Versions are a message of a branch and its siblings, in their order.
type Versions struct {
	All    []tree.Message
	Chosen uuid.UUID // that the branch goes on from
}

type line struct {
	Name     string   `json:"name"`
	IsUser   bool     `json:"is_user"`
	IsSystem bool     `json:"is_system"`
	SendDate string   `json:"send_date"`
	Mes      string   `json:"mes"`
	Swipes   []string `json:"swipes,omitempty"`
	SwipeID  *int     `json:"swipe_id,omitempty"`
	Extra    extra    `json:"extra"`
}

type extra struct {
	Reasoning   string       `json:"reasoning,omitempty"`
	Invocations []invocation `json:"tool_invocations,omitempty"`
}

// An invocation is a call of a tool with its result.
type invocation struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	Name        string `json:"name"`
	Parameters  string `json:"parameters"`
	Result      string `json:"result"`
}

// Write writes a branch as a chat: siblings of one role are swipes, and calls of tools
// with their results a message of the system's. The title becomes the character's name,
// from which the chat's title is read. A message and its siblings are held at a time.
func Write(w io.Writer, c tree.Conversation, branch iter.Seq2[Versions, error]) (err error) {
	defer fault.Wrap(&err, "sillytavern.Write(%s)", c.ID)
	f := writer{out: bufio.NewWriter(w), character: c.Title}
	if f.character == "" {
		f.character = "Assistant"
	}
	f.write(map[string]any{"user_name": "User", "character_name": f.character, "create_date": sendDate(c.CreatedAt), "chat_metadata": struct{}{}})
	for v, err := range branch {
		if err != nil {
			return err
		}
		f.message(v)
	}
	f.endCalls()
	return f.out.Flush()
}

type writer struct {
	out       *bufio.Writer
	character string
	calls     *line // whose results are being read; nil for none
}

func (f *writer) message(v Versions) {
	var swipes []string
	var m tree.Message
	chosen := 0
	for _, one := range v.All {
		if one.ID == v.Chosen {
			m, chosen = one, len(swipes)
		}
		swipes = append(swipes, format.Shown(chat.Read(one.Body)))
	}
	said := chat.Read(m.Body)
	if m.Role == tree.RoleTool {
		f.result(said)
		return
	}
	f.endCalls()
	l := line{Name: f.character, SendDate: sendDate(m.CreatedAt), Mes: swipes[chosen], Extra: extra{Reasoning: m.Reasoning}}
	switch m.Role {
	case tree.RoleUser:
		l.Name, l.IsUser = "User", true
	case tree.RoleSystem, tree.RoleDeveloper:
		l.Name, l.IsSystem = "System", true
	}
	if said.Name != nil && *said.Name != "" {
		l.Name = *said.Name
	}
	for i, one := range v.All {
		if text := swipes[i]; one.Role == m.Role && text != "" {
			if one.ID == v.Chosen {
				at := len(l.Swipes)
				l.SwipeID = &at
			}
			l.Swipes = append(l.Swipes, text)
		}
	}
	if len(l.Swipes) < 2 || l.SwipeID == nil {
		l.Swipes, l.SwipeID = nil, nil
	}
	if l.Mes != "" || len(said.Calls) == 0 {
		f.write(l)
	}
	if len(said.Calls) == 0 {
		return
	}
	f.calls = &line{Name: "SillyTavern System", IsSystem: true, SendDate: l.SendDate}
	var names []string
	for _, call := range said.Calls {
		names = append(names, call.Name)
		f.calls.Extra.Invocations = append(f.calls.Extra.Invocations, invocation{ID: call.ID, DisplayName: call.Name, Name: call.Name, Parameters: call.Arguments})
	}
	f.calls.Mes = "Tool calls: " + strings.Join(names, ", ")
}

// result takes what a tool gave to the call that it answers.
func (f *writer) result(said *chat.Message) {
	if f.calls == nil {
		return
	}
	for i, call := range f.calls.Extra.Invocations {
		if call.ID == said.Answers() {
			f.calls.Extra.Invocations[i].Result = format.Shown(said)
		}
	}
}

func (f *writer) endCalls() {
	if f.calls != nil {
		f.write(f.calls)
		f.calls = nil
	}
}

func (f *writer) write(v any) {
	f.out.Write(append(chat.MustMarshal(v), '\n')) // a bufio.Writer remembers the first error
}

func sendDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
