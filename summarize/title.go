package summarize

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// Titles says what gives a conversation without a title one.
type Titles string

const (
	TitlesOff    Titles = "off"    // nothing
	TitlesDigest Titles = "digest" // the beginning of its first question: see TitleOf
	TitlesModel  Titles = "model"  // the same, until the first model that writes summaries has given a better one
)

const (
	titleLength = 60        // characters of a question that make a title
	titleText   = 256 << 10 // bytes of a message in which the question is looked for
)

// TitleOf returns the first 60 characters of the user's first question, or else the
// name of the first file. It returns "" where there is neither. What an agent adds to
// a question in tags, such as <system-reminder>, counts only where there is nothing
// else.
func TitleOf(messages ...*chat.Message) string {
	for _, all := range []bool{false, true} {
		for _, m := range messages {
			if m.Role != chat.User {
				continue
			}
			text := m.Text()
			if files := m.Attachments(); strings.TrimSpace(text) == "" && len(files) > 0 {
				text = files[0].Name
			}
			if title := titleLine(withoutTags(text[:min(len(text), titleText)], all)); title != "" {
				return title
			}
		}
	}
	return ""
}

var openingTag = regexp.MustCompile(`<([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)>`)

// withoutTags removes pairs of tags, and what stands between them if the name of the
// tag has several words, as those of agents have. If all is set, it removes tags
// alone. A tag that isn't closed stays.
func withoutTags(text string, all bool) string {
	var b strings.Builder
	for b.Len() < 16*titleLength {
		at := openingTag.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name := text[at[2]:at[3]]
		inner, rest, closed := strings.Cut(text[at[1]:], "</"+name+">")
		switch {
		case !closed:
			b.WriteString(text[:at[1]])
			text = text[at[1]:]
			continue
		case all || !strings.ContainsAny(name, "-_"):
			rest = inner + rest
		}
		b.WriteString(text[:at[0]])
		text = rest
	}
	return b.String() + text
}

// titleLine makes one line of a text, and cuts it at a word. Characters that turn the
// direction of writing go, because they would turn what stands beside a title, too.
func titleLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	line := []rune(strings.Join(words, " "))
	if len(line) <= titleLength {
		return string(line)
	}
	cut := titleLength
	for cut > titleLength/2 && line[cut] != ' ' {
		cut--
	}
	if line[cut] != ' ' { // one long word, or a language without spaces
		cut = titleLength
	}
	return string(line[:cut]) + "…"
}

// Titles says what gives titles here.
func (s *Service) Titles() Titles { return s.titles }

// titleMessages is how many messages the branch of a first answer has at most, the
// prefix and calls of tools included.
const titleMessages = 12

// FirstAnswer reports whether an answer may be the first of its branch, as far as
// its depth tells. It costs nothing.
func FirstAnswer(depth int) bool { return depth < titleMessages }

// Title gives a conversation a title after the first answer of a branch. Where the
// conversation has none, that is TitleOf its messages. Where that is its title, the
// first model that writes summaries is asked once for a better one, if Titles says so.
// Any other title was given by a person or a client, and stays.
//
// A model that fails leaves the title as it is. An error is the database's.
func (s *Service) Title(ctx context.Context, conversationID, answerID uuid.UUID) (err error) {
	defer fault.Wrap(&err, "summarize.Title(%s)", conversationID)
	ctx = access.With(ctx, s.store.TenantID())
	if s.titles == TitlesOff {
		return nil
	}
	c, err := s.store.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	var branch []tree.Message
	var said []*chat.Message
	answers := 0
	for m, err := range s.store.Branch(ctx, conversationID, answerID, titleMessages) {
		if err != nil {
			return err
		}
		if len(branch) == 0 && m.ParentID != uuid.Nil {
			return nil // the branch is longer
		}
		read := chat.Read(m.Body)
		if branch, said = append(branch, m), append(said, read); read.Role == chat.Assistant && strings.TrimSpace(read.Text()) != "" {
			answers++
		}
	}
	plain := TitleOf(said...)
	if answers != 1 || plain == "" {
		return nil
	}
	if c.Title == "" {
		if _, err := s.store.Retitle(ctx, conversationID, "", plain); err != nil {
			return err
		}
		c.Title = plain
	}
	models, ok := s.summarizer.(Cascade)
	if s.titles != TitlesModel || !ok || c.Title != plain {
		return nil
	}
	if slices.ContainsFunc(chat.Members(branch[len(branch)-1].Metadata), func(m chat.Member) bool { return m.Name == titleCalls }) {
		return nil // it was asked
	}
	title, call, failed := models.title(ctx, branch)
	if failed != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	// The call was paid for, even if the caller's time is over now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), telling)
	defer cancel()
	if failed != nil {
		s.log.WarnContext(ctx, "the model gave no title, so the conversation keeps the beginning of its first question", "conversation_id", conversationID, "error", failed)
	} else if _, err := s.store.Retitle(ctx, conversationID, plain, title); err != nil {
		return err
	}
	if failed != nil && call.PromptTokens+call.CompletionTokens == 0 {
		return nil
	}
	return s.store.ChangeMetadata(ctx, conversationID, answerID, func(stored json.RawMessage) json.RawMessage { return withCall(stored, call) })
}

// titleCalls are a member of an answer's metadata.
const titleCalls = "title_calls"

// withCall stores a call for a title in an answer's metadata, as Store.Usage counts
// it. Everything else there stays as it stands.
func withCall(metadata json.RawMessage, call prompt.Attempt) json.RawMessage {
	list, _ := json.Marshal([]prompt.Attempt{call}) // strings and numbers always marshal
	var members []chat.Member
	if len(metadata) > 0 {
		members = slices.DeleteFunc(chat.Members(metadata), func(m chat.Member) bool { return m.Name == titleCalls })
	}
	return chat.AppendObject(nil, append(members, chat.Member{Name: titleCalls, Value: list}))
}

// titleTokens is what a title's answer is given room for, so that a model can reason.
const titleTokens = 700

// title asks the first model for the title of a conversation that begins with these
// messages.
func (c Cascade) title(ctx context.Context, messages []tree.Message) (title string, call prompt.Attempt, err error) {
	m := c.Models[0]
	call.Model = m.Model.Name()
	done, err := m.breaker.Enter()
	if err != nil {
		return "", call, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout())
	defer cancel()
	start, nonce := time.Now(), prompt.Nonce(uuid.New())
	answer, err := c.call(ctx, m, prompt.Title(messages, nonce), titleTokens, &call)
	call.DurationMS = time.Since(start).Milliseconds()
	done(unlessAnswered(err))
	if err != nil {
		return "", call, err
	}
	title, err = prompt.CleanTitle(answer, nonce)
	return title, call, err
}
