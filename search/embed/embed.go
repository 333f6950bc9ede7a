package embed

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// A Config sets up a Service.
type Config struct {
	Model           llm.Embedder
	QuestionTimeout time.Duration // of the embedding of a question; 0 is 2 s
	Logger          *slog.Logger  // nil discards
}

// A Service embeds messages and questions with one model, for every tenant.
// Several goroutines may use it.
type Service struct {
	model   llm.Embedder
	timeout time.Duration
	log     *slog.Logger
	breaker *llm.Breaker
}

// Bounds of a call of the model.
const (
	questionTimeout = 2 * time.Second
	batchTimeout    = time.Minute
	maxQuestion     = 8 << 10 // bytes of a question that are embedded
	maxTexts        = 64      // of a batch
	maxBatchTokens  = 60_000  // of a batch with more than one text
	maxTextTokens   = 6_000   // of a message; the rest of it is left out, as models take about 8,000
	maxTextBytes    = 48 << 10
)

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.QuestionTimeout == 0 {
		cfg.QuestionTimeout = questionTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{model: cfg.Model, timeout: cfg.QuestionTimeout, log: cfg.Logger, breaker: llm.NewBreaker(new(atomic.Bool), time.Now)}
}

// Model returns the name under which vectors are stored.
func (s *Service) Model() string { return s.model.Name() }

// Question returns the vector of a question, or the zero Vector where the model
// gives none in time: the question is then answered by words alone.
func (s *Service) Question(ctx context.Context, question string) Vector {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out, err := s.call(ctx, []string{cut(question, maxQuestion)})
	if err != nil {
		if !errors.As(err, new(*llm.SparedError)) && !errors.Is(err, llm.ErrCanceled) {
			s.log.WarnContext(ctx, "a question is answered by words alone, as it could not be embedded", "error", err)
		}
		return Vector{}
	}
	return VectorOf(out[0])
}

// Step embeds one batch of the messages of a conversation that lack a vector: with a
// place, of those that were appended after that change (see tree.Index.Unembedded). It
// returns how many it stored, and how many it found, which is 0 at the end. It asks the
// model while it holds nothing of the database. Errors are the database's, an
// *llm.Error or an *llm.SparedError.
func (s *Service) Step(ctx context.Context, store *tree.Store, conversationID uuid.UUID, place int64) (saved, found int, err error) {
	defer fault.Wrap(&err, "embed.Step(%s)", conversationID)
	lacking, err := store.Index().Unembedded(ctx, conversationID, s.Model(), place, maxTexts)
	if err != nil || len(lacking) == 0 {
		return 0, 0, err
	}
	all := make([]tree.Embedding, 0, len(lacking))
	var texts []string
	var of []int // by text: its place in all
	tokens := 0
	for _, m := range lacking {
		text := shortened(Said(chat.Read(m.Body)), m.Tokens)
		if text != "" {
			if tokens += min(m.Tokens, maxTextTokens); len(texts) > 0 && tokens > maxBatchTokens {
				break
			}
			texts, of = append(texts, text), append(of, len(all))
		}
		all = append(all, tree.Embedding{MessageID: m.ID, Version: m.Version})
	}
	vectors, err := s.vectors(access.With(ctx, store.TenantID()), texts)
	if err != nil {
		return 0, len(lacking), err
	}
	for i, v := range vectors {
		if v != nil {
			all[of[i]].Vector = Encode(v)
		}
	}
	saved, err = store.Index().SaveEmbeddings(ctx, conversationID, s.Model(), all)
	return saved, len(lacking), err
}

// vectors embeds texts; a vector is nil where the provider doesn't take the text.
// It asks for a batch that was refused in halves, down to the text to blame, but
// only if the provider takes any text at all.
func (s *Service) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	out, err := s.call(ctx, texts)
	if !refused(err) {
		return out, err
	}
	if _, err := s.call(ctx, []string{"text"}); err != nil {
		return nil, err
	}
	return s.halves(ctx, texts)
}

func (s *Service) halves(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 1 {
		out, err := s.call(ctx, []string{cut(texts[0], max(1, len(texts[0])/4))})
		if refused(err) {
			return [][]float32{nil}, nil
		}
		return out, err
	}
	var all [][]float32
	for _, half := range [][]string{texts[:len(texts)/2], texts[len(texts)/2:]} {
		out, err := s.call(ctx, half)
		if refused(err) {
			out, err = s.halves(ctx, half)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, out...)
	}
	return all, nil
}

// call asks the model, unless its last calls failed.
func (s *Service) call(ctx context.Context, texts []string) ([][]float32, error) {
	done, err := s.breaker.Enter()
	if err != nil {
		return nil, err
	}
	out, err := s.model.Embed(ctx, texts)
	done(err)
	return out.Vectors, err
}

// refused tells whether the provider answered that it doesn't take the texts.
func refused(err error) bool {
	return errors.Is(err, llm.ErrInvalid) || errors.Is(err, llm.ErrPromptTooLong)
}

// maxSaid is how much of one message's text is read, in bytes.
const maxSaid = 256 << 10

// Said returns what of a message recall searches: its text, what it refuses, and
// the tools that it calls with their arguments.
func Said(m *chat.Message) string {
	text := m.Text()
	if m.Refusal != nil {
		text += "\n" + *m.Refusal
	}
	for _, call := range m.Calls {
		if len(text) < maxSaid {
			text += "\n" + call.Name + " " + call.Arguments
		}
	}
	return text[:min(len(text), maxSaid)]
}

// shortened is a text of which the model takes all.
func shortened(text string, tokens int) string {
	most := maxTextBytes
	if tokens > maxTextTokens {
		most = min(most, int(int64(len(text))*maxTextTokens/int64(tokens)))
	}
	return strings.TrimSpace(cut(text, most))
}

// cut gives the beginning of a text, in whole runes.
func cut(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}
