package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// Titles says what gives a conversation without a title one.
type Titles string

const (
	TitlesOff    Titles = "off"    // nothing
	TitlesDigest Titles = "digest" // its first message: see TitleOf
	TitlesModel  Titles = "model"  // the same, until a model that writes summaries has given a better one
)

// titleLength is how many characters of a message make a title.
const titleLength = 60

// maxTitleLine bounds what is read of a line, because links and marks of Markdown
// are longer than what stays of them.
const maxTitleLine = 4096

// TitleOf makes a title of what the user begins with: of the first line with
// words, without its marks of Markdown, or of the name of a file where there is no
// text. It is "" where there is neither.
func TitleOf(messages ...*chat.Message) string {
	for _, m := range messages {
		if m.Role != chat.User {
			continue
		}
		text := m.Text()
		if files := m.Attachments(); strings.TrimSpace(text) == "" && len(files) > 0 {
			text = files[0].Name
		}
		line := firstLine(text)
		words := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		line = strings.ToValidUTF8(strings.Join(words, " "), "")
		if characters := []rune(line); len(characters) > titleLength {
			line = strings.TrimRight(string(characters[:titleLength]), " ") + "…"
		}
		return line
	}
	return ""
}

// firstLine is the first line that is more than marks of Markdown, without its
// marks. Where every line is marks alone, it is the first one as it stands.
func firstLine(text string) string {
	text = strings.TrimSpace(text)
	for line := range strings.SplitSeq(text, "\n") {
		if plain := prompt.PlainLine(line[:min(len(line), maxTitleLine)]); plain != "" {
			return plain
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Titles says what gives titles here.
func (s *Service) Titles() Titles { return s.titles }

// titleMessages is how many messages the branch of a first answer has at most, the
// prefix and calls of tools included.
const titleMessages = 12

// titleTimeout is how long all models together may take for a title.
const titleTimeout = time.Minute

// FirstAnswer reports whether an answer may be the first of its branch, as far as
// its depth tells. It costs nothing.
func FirstAnswer(answer tree.Message) bool { return answer.Depth < titleMessages }

// Title gives a conversation a title after the first answer of a branch. Where the
// conversation has none, that is TitleOf its first message. Where that is its title,
// the models that write summaries are asked for a better one, if Titles says so.
// Any other title was given by a person or a client, and stays.
//
// A model that fails leaves the title as it is. An error is the database's.
func (s *Service) Title(ctx context.Context, conversationID, answerID uuid.UUID) (err error) {
	defer fault.Wrap(&err, "summarize.Title(%s)", conversationID)
	if s.titles == TitlesOff {
		return nil
	}
	c, err := s.store.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	page, err := s.store.Transcript(ctx, conversationID, answerID, tree.Paging{Limit: titleMessages})
	if err != nil || page.Next != "" || !isFirstAnswer(page.Data) {
		return err
	}
	said := make([]*chat.Message, len(page.Data))
	for i, m := range page.Data {
		said[i] = chat.Read(m.Body)
	}
	plain := TitleOf(said...)
	if c.Title == "" && plain != "" {
		if _, err := s.store.Retitle(ctx, conversationID, "", plain); err != nil {
			return err
		}
		c.Title = plain
	}
	models, ok := s.summarizer.(Cascade)
	if s.titles != TitlesModel || !ok || plain == "" || c.Title != plain {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, titleTimeout)
	title, calls, failed := models.title(asked, page.Data)
	cancel()
	if failed != nil {
		s.log.WarnContext(ctx, "no model gave a title, so the conversation keeps the beginning of its first message", "conversation_id", conversationID, "error", failed)
	}
	// The calls were paid for, even if the caller's time is over now.
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), telling)
	defer cancel()
	if failed == nil {
		if _, err := s.store.Retitle(kept, conversationID, plain, title); err != nil {
			return err
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return s.store.ChangeMetadata(kept, conversationID, answerID, func(stored json.RawMessage) json.RawMessage { return withCalls(stored, calls) })
}

// titleCalls is the member of an answer's metadata that has the calls.
const titleCalls = "title_calls"

// A titleCall is one call of a model that was asked for a title, whatever came of
// it.
type titleCall struct {
	Model            string `json:"model"`
	PromptTokens     int    `json:"prompt_tokens"`
	CompletionTokens int    `json:"completion_tokens"`
	ReasoningTokens  int    `json:"reasoning_tokens,omitempty"` // the part of CompletionTokens that was reasoning
}

// withCalls adds the calls to an answer's metadata, and leaves everything else there
// as it stands.
func withCalls(metadata json.RawMessage, calls []titleCall) json.RawMessage {
	list, _ := json.Marshal(calls) // strings and numbers always marshal
	var members []chat.Member
	if len(metadata) > 0 {
		members = slices.DeleteFunc(chat.Members(metadata), func(m chat.Member) bool { return m.Name == titleCalls })
	}
	return chat.AppendObject(nil, append(members, chat.Member{Name: titleCalls, Value: list}))
}

// isFirstAnswer tells whether the last of a branch's messages is the only answer
// in words.
func isFirstAnswer(branch []tree.Message) bool {
	answers := 0
	for _, m := range branch {
		if m.Role == tree.RoleAssistant && strings.TrimSpace(chat.Read(m.Body).Text()) != "" {
			answers++
		}
	}
	return answers == 1
}

// title asks the models, one after the other, for the title of a conversation that
// begins with these messages. The calls are all that were made, the one that gave
// the title last.
func (c Cascade) title(ctx context.Context, messages []tree.Message) (title string, calls []titleCall, err error) {
	err = errNoModels
	for _, m := range c.Models {
		if ctx.Err() != nil {
			return "", calls, ctx.Err()
		}
		var done func(error)
		if done, err = m.breaker.enter(true); err != nil {
			continue
		}
		title, err = c.askTitle(ctx, m, messages, &calls)
		if errors.Is(err, context.Canceled) {
			done(context.Canceled)
		} else {
			done(err)
		}
		if err == nil {
			return title, calls, nil
		}
	}
	return "", calls, err
}

// titleTokens is how many tokens a title may take, so that a model that reasons has
// room for it.
const titleTokens = 2048

// askTitle asks one model, and adds the call.
func (c Cascade) askTitle(ctx context.Context, m Model, messages []tree.Message, calls *[]titleCall) (string, error) {
	nonce := prompt.Nonce(uuid.New())
	temperature := temperature
	ctx, cancel := context.WithTimeout(ctx, m.timeout())
	defer cancel()
	res, err := complete(ctx, m.Model, llm.Request{Messages: prompt.Title(messages, nonce), Temperature: &temperature, MaxOutputTokens: titleTokens})
	if res.PromptTokens+res.CompletionTokens > 0 || err == nil {
		*calls = append(*calls, titleCall{
			Model: m.Model.Name(), PromptTokens: res.PromptTokens, CompletionTokens: res.CompletionTokens, ReasoningTokens: res.ReasoningTokens,
		})
	}
	if err != nil {
		return "", err
	}
	switch {
	case res.Refusal != "":
		return "", answerError{prompt.ErrRefused}
	case res.FinishReason != finishComplete:
		return "", answerError{errUnfinished}
	}
	title, err := prompt.CleanTitle(res.Text, nonce)
	if err != nil {
		return "", answerError{err}
	}
	return title, nil
}
