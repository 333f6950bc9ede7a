// Package recognize finds where requests go on in a tree, and answers them there. A
// client of chat completions, of Anthropic's Messages or of Responses may keep its
// history itself and send all of it, or its last messages, each time. Where such a
// history goes on is told by what its messages mean. A request may also name the message
// below which it goes on: then only what isn't said there yet is stored.
//
//	turn := recognize.Turn{Session: recognize.Session(header, metadata), History: tree.History{Messages: messages}}
//	place, err := s.Find(ctx, turn)       // conversation, head, how much is known, what is new
//	rep, err := s.Record(ctx, turn, ask)  // stores what is new, and begins the reply
//
// The conversation is that of the client's session, or else that of the chat's
// opening. Within it, package tree finds the place. Follow goes on from a place that
// is known, as long as messages stand there that say the same.
//
// The package knows no form of a wire but messages and headers.
package recognize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A Service recognizes the histories of one tenant's clients.
type Service struct {
	Store   *tree.Store
	Replies *reply.Service
}

// A Turn is what a client sends that keeps its history itself.
type Turn struct {
	Session string // from Session; "" for none
	User    string // who uses the client, as it says; "" for nobody. It tells two chats apart that begin alike and have no session
	tree.History
}

// A Match is the path at which a turn's history goes on.
type Match struct {
	ConversationID uuid.UUID
	New            bool // there is no such conversation yet
	tree.Path
}

// Instructions are the text of the client's prompt that isn't on the path: the
// instructions among the first of the history's messages.
func (p Match) Instructions(messages []*chat.Message) string {
	var texts []string
	for _, m := range messages[:p.Prompt] {
		if m.Role == chat.System || m.Role == chat.Developer {
			texts = append(texts, m.Text())
		}
	}
	return strings.Join(texts, "\n\n")
}

// clock matches the days and times that agents write anew into their instructions for each
// request. Other numbers may tell whom a chat is with.
var clock = regexp.MustCompile(`(?i)\b\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|t?\d{1,2}:\d\d(:\d\d)?([.,]\d+)?(z\b| ?[+-]\d\d:?\d\d)?|\d+ ?[年月日时時分秒]|\b[ap]\.?m\b|` +
	`\b(mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(day)?\b|` +
	`(\b\d{1,2}(st|nd|rd|th)?\.? (of )?)?\b(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)\b\.?( +\d{1,2}(st|nd|rd|th)?\b)?(,? \d{4}\b)?`)

// reminder matches what agents add to a user's message in tags of several words, as
// <system-reminder>. They make it anew at each start, and leave it out later.
var reminder = regexp.MustCompile(`(?s)<[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+>.*?</[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+>\s*`)

// said is the form of a message without reminders, unless it has nothing else.
func said(m *chat.Message) [sha256.Size]byte {
	bare := *m
	bare.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		bare.Parts[i].Text = reminder.ReplaceAllString(p.Text, "")
	}
	if strings.TrimSpace(bare.Text()) == "" {
		return m.Form()
	}
	return bare.Form()
}

// conversation is the conversation that a turn belongs to: that of its session, or
// else that of its opening, which are all messages up to the user's first, without
// the clocks in instructions and the reminders in that message. So two chats of a tenant
// that begin alike share a conversation until they part, unless they are of two users.
// Ids derive under the installation's secret, and nothing of two tenants ever meets.
func (s Service) conversation(ctx context.Context, t Turn) (uuid.UUID, error) {
	if t.Session != "" {
		return s.Store.DeriveID(ctx, "session", t.Session)
	}
	var opening chat.PathHash
	for _, m := range t.Messages {
		form := m.Form()
		if text := m.Text(); m.Role == chat.User {
			form = said(m)
		} else if clock.MatchString(text) {
			form = sha256.Sum256([]byte(clock.ReplaceAllString(text, "0")))
		}
		if opening = opening.ChildOf(form); m.Role == chat.User {
			break
		}
	}
	return s.Store.DeriveID(ctx, "opening", hex.EncodeToString(opening[:])+t.User)
}

// Find finds where a turn's history goes on.
func (s Service) Find(ctx context.Context, t Turn) (Match, error) { return s.find(ctx, &t) }

// maxAbridged is how many messages of a history may differ from the stored ones.
const maxAbridged = 64

// find is Find. In the history it puts stored messages in the place of those that the
// client abridges, unless one is to be continued, or asks what wasn't answered so.
func (s Service) find(ctx context.Context, t *Turn) (p Match, err error) {
	defer fault.Wrap(&err, "recognize.Find(%d messages)", len(t.Messages))
	t.History.Session = t.Session != ""
	if p.ConversationID, err = s.conversation(ctx, *t); err != nil {
		return p, err
	}
	known := -1
	for range maxAbridged + 1 {
		p.Path, err = s.Store.Histories().Recognize(ctx, p.ConversationID, t.History)
		if err != nil || p.Known >= len(t.Messages)-1 || p.Known <= known {
			break
		}
		known = p.Known
		var whole []tree.Message
		whole, err = s.shownBelow(ctx, p.ConversationID, p.HeadID, func(m tree.Message) bool { return abridges(t.Messages[known], m) })
		same := slices.IndexFunc(whole, func(m tree.Message) bool {
			answered := 1
			if m.Role == tree.RoleUser && err == nil {
				_, answered, err = s.Follow(ctx, p.ConversationID, m.ID, t.Messages[known+1:known+2])
			}
			return answered > 0
		})
		if err != nil || same < 0 {
			break
		}
		t.Messages = slices.Clone(t.Messages)
		t.Messages[known] = chat.Read(whole[same].Body)
	}
	if errors.Is(err, fault.NotFound) {
		p.New, err = true, nil
	}
	return p, err
}

// abridges tells whether a client's message is a stored one with less of its text: a
// question with other reminders, an answer that was stopped, of which the client got the
// beginning, or one with the same calls.
func abridges(m *chat.Message, stored tree.Message) bool {
	whole, text := chat.Read(stored.Body), strings.TrimSpace(m.Text())
	switch {
	case m.Role != whole.Role:
		return false
	case m.Role == chat.User:
		return said(m) == said(whole)
	case m.Role != chat.Assistant || !strings.HasPrefix(whole.Text(), text):
		return false
	case len(m.Calls) == 0:
		return text != "" && reply.EndOf(stored).Status == reply.StatusStopped
	}
	return slices.EqualFunc(m.Calls, whole.Calls, func(a, b chat.Call) bool { return a.ID != "" && a.ID == b.ID })
}

// A Recording is how a turn is stored and answered.
type Recording struct {
	// Below is the message that the request names as the one to go on from; nil for
	// none. Then the turn's session means nothing.
	Below *Message
	// Ask gives the request for the reply, without a place and messages: these are
	// those of the place, or of what stands there after the turn was stored. Its Prompt is
	// the client's messages.
	Ask func(Match) reply.Request
	// Managed has the model read the branch's context, with its summaries, as it does
	// below a message that the request names. Otherwise it reads the client's messages.
	Managed bool
	Attempt Attempt
	// Keep stores what messages have links to, before they are stored; nil for nothing.
	Keep func(messages []*chat.Message) error
	// Import waits for a turn among the tenant's imports. A history of more messages
	// than one commit takes is one.
	Import func(ctx context.Context) (leave func(), err error)
}

// A Message is one that a request names.
type Message struct {
	ConversationID, ID uuid.UUID // ID is uuid.Nil for none: the history begins at a root
	Head               bool      // the request names the conversation, and the message is its active head
	Instructions       string    // of the client's, which aren't on the message's branch; "" for none
}

// Record stores what is new in a turn's history and begins the reply to it, or finds
// the reply that the request repeats. A refusal's field names the message in the
// history, as messages[i].
func (s Service) Record(ctx context.Context, t Turn, rec Recording) (_ *reply.Reply, err error) {
	defer fault.Wrap(&err, "recognize.Record(%d messages)", len(t.Messages))
	var p Match
	if rec.Below != nil {
		p, err = s.below(ctx, *rec.Below, t.History, rec.Attempt.Retried)
	} else {
		p, err = s.find(ctx, &t)
	}
	if err == nil && rec.Keep != nil {
		err = rec.Keep(t.Messages[p.Known:])
	}
	if err != nil {
		return nil, err
	}
	in := tree.NewConversation{ID: p.ConversationID, Title: summarize.TitleOf(t.Messages...)}
	if rec.Below != nil {
		return s.answer(ctx, t, p, in.Title, rec)
	}
	if len(p.Rest) <= tree.MaxChain {
		if p.New {
			_, p.New, err = s.Store.CreateConversation(ctx, in)
		}
		var rep *reply.Reply
		if err == nil {
			rep, err = s.answer(ctx, t, p, in.Title, rec)
		}
		if p.New && err != nil { // with what was refused, the conversation goes again, unless another request has said something there
			_, _ = s.Store.Histories().DeleteEmpty(context.WithoutCancel(ctx), p.ConversationID)
		}
		if !errors.Is(err, fault.Conflict) && !errors.Is(err, fault.NotFound) {
			return rep, err
		}
	}
	// The conversation changes meanwhile, or there is more to store than one commit
	// takes: that much holds a connection for a while.
	leave := func() {}
	if len(p.Rest) > tree.MaxChain {
		if leave, err = rec.Import(ctx); err != nil {
			return nil, err
		}
	}
	t.History.Session = t.Session != ""
	p.Path, err = s.Store.Histories().Append(ctx, in, t.History)
	leave()
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, t, p, in.Title, rec)
}

// below finds how much of a history stands below a message that its request names. A
// request that its client sent before may have made another branch of the conversation
// active since, by its own answer.
func (s Service) below(ctx context.Context, at Message, h tree.History, retried bool) (p Match, err error) {
	p.ConversationID = at.ConversationID
	p.HeadID, p.Known, err = s.Follow(ctx, at.ConversationID, at.ID, h.Messages)
	if err == nil && p.Known < len(h.Messages) && retried && at.Head {
		var asked uuid.UUID
		if asked, err = s.asked(ctx, at.ConversationID, h.Messages); asked != uuid.Nil {
			p.HeadID, p.Known = asked, len(h.Messages)
		}
	}
	p.Rest = h.After(p.Known)
	return p, err
}

// answer begins the reply below a place. Where the model reads the branch's context, the
// instructions of the client that aren't on the branch come beside it. A model that gets
// the client's request has them there.
func (s Service) answer(ctx context.Context, t Turn, p Match, title string, rec Recording) (*reply.Reply, error) {
	ask := rec.Ask(p)
	ask.Title = title
	var instructions string
	switch {
	case rec.Below != nil:
		ask.Prompt, instructions = nil, rec.Below.Instructions
	case rec.Managed:
		ask.Prompt, instructions = nil, p.Instructions(t.Messages)
	case ask.Prompt != nil:
		ask.Prompt.Tokens = p.Tokens
	}
	if instructions != "" && ask.Upstream == nil {
		ask.Instructions = strings.TrimSuffix(instructions+"\n\n"+ask.Instructions, "\n\n")
	}
	ask.ConversationID, ask.HeadID, ask.Messages, ask.PathHash = p.ConversationID, p.HeadID, p.Rest, rec.Below == nil
	if root := uuid.Nil; ask.PathHash && p.Known == 0 && len(p.Rest) > 0 {
		ask.ParentID = &root
	}
	rep, err := s.Start(ctx, ask, rec.Attempt)
	return rep, inHistory(err, p.Known)
}

// RecordOr begins a reply by record, or by ask where record is nil. What record refuses,
// ask answers all the same, unless the refusal counts: unrecorded then says why nothing
// is recorded. It is nil otherwise. The request reads the reply until ctx ends, and with
// stops, the reply stops then if nobody else reads it.
func RecordOr(ctx context.Context, stops bool, record, ask func() (*reply.Reply, error), counts func(error) bool) (rep *reply.Reply, unrecorded, err error) {
	if record != nil {
		if rep, err = record(); err != nil && fault.Refused(err) && !counts(err) {
			unrecorded = err
		}
	}
	if record == nil || unrecorded != nil {
		rep, err = ask()
	}
	if rep != nil {
		rep.Attend(ctx, stops)
	}
	return rep, unrecorded, err
}

// inHistory moves the field of a refusal to where the history has it, of which so
// many messages are known.
func inHistory(err error, known int) error {
	if !fault.Refused(err) {
		return err
	}
	e, i := *fault.Of(err), 0
	member := strings.TrimPrefix(e.Field, "message")
	if n, _ := fmt.Sscanf(e.Field, "messages[%d]", &i); n == 1 {
		_, member, _ = strings.Cut(e.Field, "]")
	} else if member == e.Field || member != "" && member[0] != '.' {
		return err
	}
	e.Field = fmt.Sprintf("messages[%d]%s", known+i, member)
	return &e
}
