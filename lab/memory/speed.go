package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/recall"
	"github.com/coppice-chat/coppice/tree"
)

// A SpeedReport says how long recall takes on one branch.
type SpeedReport struct {
	Messages     int           `json:"messages"`
	First        time.Duration `json:"first"` // first question, which reads the branch
	Median       time.Duration `json:"median"`
	P99          time.Duration `json:"p99"`
	Long         time.Duration `json:"long"` // a question of LongWords words
	LongWords    int           `json:"long_words"`
	Appended     time.Duration `json:"appended"`     // first question after an append
	Conversation time.Duration `json:"conversation"` // first question about the whole conversation
	Again        time.Duration `json:"again"`        // the next one about it
	IndexBytes   int64         `json:"index_bytes"`
}

// Speed asks about one branch of so many messages, made of the chats' messages
// over and over, with one word in twenty replaced.
func Speed(ctx context.Context, store *tree.Store, chats []Chat, messages int) (report SpeedReport, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	var c Chat
	var questions []string
	for _, chat := range chats {
		for _, q := range chat.Questions {
			questions = append(questions, q.Text)
		}
	}
	for len(c.Messages) < messages {
		for _, m := range chats[random.IntN(len(chats))].Messages {
			words := strings.Fields(m.Text)
			for i := range words {
				if random.IntN(20) == 0 {
					words[i] = fmt.Sprintf("w%d", int(random.ExpFloat64()*5000))
				}
			}
			m.Text = strings.Join(words, " ")
			if c.Messages = append(c.Messages, m); len(c.Messages) == messages {
				break
			}
		}
	}
	if len(questions) < 3 {
		return report, errors.New("the dataset has fewer than 3 questions with evidence")
	}
	conversation, _, err := store.CreateConversation(ctx, tree.NewConversation{})
	if err != nil {
		return report, err
	}
	ids, err := c.store(ctx, store, conversation.ID)
	if err != nil {
		return report, err
	}
	head := ids[len(ids)-1]
	service := recall.New(1 << 40)
	before := heap()
	ask := func(question string, scope recall.Scope) (time.Duration, error) {
		start := time.Now()
		_, err := service.Recall(ctx, store, conversation.ID, head, recall.Question{Query: question, Scope: scope})
		return time.Since(start), err
	}
	cold, err := ask(questions[0], recall.ScopeBranch)
	if err != nil {
		return report, err
	}
	size := heap() - before
	var took []time.Duration
	for range 200 {
		d, err := ask(questions[random.IntN(len(questions))], recall.ScopeBranch)
		if err != nil {
			return report, err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	var long []string
	for len(long) < 10_000 {
		long = append(long, strings.Fields(c.Messages[random.IntN(len(c.Messages))].Text)...)
	}
	text := strings.Join(long[:10_000], " ")
	for len(text) > recall.MaxQueryBytes {
		text = text[:strings.LastIndexByte(text[:recall.MaxQueryBytes], ' ')]
	}
	huge, err := ask(text, recall.ScopeBranch)
	if err != nil {
		return report, err
	}
	appended, _, err := store.AppendChain(ctx, conversation.ID, head, []tree.NewMessage{{Body: []byte(`{"role":"user","content":"One more about the garden."}`)}})
	if err != nil {
		return report, err
	}
	head = appended[0].ID
	more, err := ask(questions[1], recall.ScopeBranch)
	if err != nil {
		return report, err
	}
	whole, err := ask(questions[1], recall.ScopeConversation)
	if err != nil {
		return report, err
	}
	again, err := ask(questions[2], recall.ScopeConversation)
	if err != nil {
		return report, err
	}
	report = SpeedReport{
		Messages: messages, First: cold, Median: took[len(took)/2], P99: took[len(took)*99/100], Long: huge, LongWords: len(strings.Fields(text)),
		Appended: more, Conversation: whole, Again: again, IndexBytes: size,
	}
	return report, nil
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
