package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// first is how many messages an answer has. A question is a hit where one of
// them holds evidence.
const first = 10

// A Score counts questions and hits.
type Score struct {
	Kind      string `json:"kind"`
	Questions int    `json:"questions"`
	Recall    int    `json:"recall"` // hits
	Plain     int    `json:"plain"`  // hits of plain BM25
	Near      int    `json:"near"`   // hits of BM25 over stems, with half of the scores of the messages beside
}

// A RecallReport says what recall found of the evidence.
type RecallReport struct {
	Kinds     []Score       `json:"kinds"`
	All       Score         `json:"all"`
	FirstTime time.Duration `json:"first_time"` // median of each chat's first question, which reads the chat
	Time      time.Duration `json:"time"`       // median of the others
}

// Recall stores the chats, and asks all their questions. Beside recall stands
// plain BM25: k1 1.2, b 0.75, without English function words, the speaker's name
// one of the message's words; and BM25 over stems, where half of the scores of the
// messages before and after count.
func Recall(ctx context.Context, store *tree.Store, chats []Chat) (*RecallReport, error) {
	service, kinds, report := search.New(0), map[string]*Score{}, &RecallReport{All: Score{Kind: "all"}}
	var times, firstTimes []time.Duration
	for _, c := range chats {
		conversation, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: c.Name})
		if err != nil {
			return nil, err
		}
		ids, err := c.store(ctx, store, conversation.ID)
		if err != nil {
			return nil, err
		}
		plain, near := newPlain(c, plainWords, 0), newPlain(c, stemmedWords, 0.5)
		for i, q := range c.Questions {
			asked := search.Question{Query: q.Text, Scope: search.ScopeBranch, Limit: first, MaxTokens: search.MaxMaxTokens}
			start := time.Now()
			answer, err := service.Recall(ctx, store, conversation.ID, ids[len(ids)-1], asked)
			if err != nil {
				return nil, err
			}
			if took := time.Since(start); i == 0 {
				firstTimes = append(firstTimes, took)
			} else {
				times = append(times, took)
			}
			kind := kinds[q.Kind]
			if kind == nil {
				kind = &Score{Kind: q.Kind}
				kinds[q.Kind] = kind
			}
			for _, s := range []*Score{kind, &report.All} {
				s.Questions++
				s.Recall += q.hit(depths(answer))
				s.Plain += q.hit(plain.search(q.Text, first))
				s.Near += q.hit(near.search(q.Text, first))
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		report.Kinds = append(report.Kinds, *kinds[kind])
	}
	report.FirstTime, report.Time = median(firstTimes), median(times)
	return report, nil
}

// depths says where the hits of an answer stand in their chat.
func depths(a search.Answer) []int {
	found := make([]int, len(a.Hits))
	for i, hit := range a.Hits {
		found[i] = hit.Message.Depth
	}
	return found
}

// hit is 1 where one of the messages holds evidence, else 0.
func (q Question) hit(found []int) int {
	if slices.ContainsFunc(found, func(i int) bool { return q.Evidence[i] }) {
		return 1
	}
	return 0
}

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// store appends a chat's messages to a conversation that is empty.
func (c Chat) store(ctx context.Context, store *tree.Store, conversationID uuid.UUID) (ids []uuid.UUID, err error) {
	parent := uuid.Nil
	var chain []tree.NewMessage
	for i, m := range c.Messages {
		chain = append(chain, tree.NewMessage{Message: chat.Read(m.body()), CreatedAt: m.At})
		if len(chain) == tree.MaxChain || i == len(c.Messages)-1 {
			stored, err := store.AppendChain(ctx, conversationID, parent, chain)
			if err != nil {
				return nil, err
			}
			for _, m := range stored.Messages {
				ids = append(ids, m.ID)
			}
			parent, chain = ids[len(ids)-1], nil
		}
	}
	return ids, nil
}
