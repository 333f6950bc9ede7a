package firsttoken

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// Sizes of what is planted: as people and models write, in bytes.
const (
	questionSize = 200
	answerSize   = 800
)

// tail is how many messages the model gets word for word at most. What lies
// above is folded into a summary, as a server does with a long branch.
const tail = 100

// A planted conversation ends with an answer.
type planted struct {
	id, last uuid.UUID
}

// responseID is the id of the last answer, as server/openai makes it. Importing
// that package would bring the whole server's modules into the lab's.
func (p planted) responseID() string {
	return "resp_" + base64.RawURLEncoding.EncodeToString(append(p.id[:], p.last[:]...))
}

// rough counts tokens at no cost: the texts are made up.
type rough struct{}

// Count gives a token to four bytes.
func (rough) Count(text string) int { return len(text) / 4 }

// plant stores a conversation of so many messages.
func plant(ctx context.Context, pool *pgxpool.Pool, messages int) (p planted, err error) {
	store := tree.New(pool, tree.WithTokenCounter(rough{}))
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: fmt.Sprint(messages, " messages")})
	if err != nil {
		return p, err
	}
	said := func(role tree.Role, size int) tree.NewMessage {
		body, _ := json.Marshal(map[string]string{"role": string(role), "content": llmtest.Text(size)}) // strings always encode
		return tree.NewMessage{Body: body}
	}
	var cutoff, head uuid.UUID
	for stored := 0; stored < messages; {
		chain := make([]tree.NewMessage, min(tree.MaxChain, messages-stored))
		for i := range chain {
			if (messages-stored-i)%2 == 0 {
				chain[i] = said(tree.RoleUser, questionSize)
			} else {
				chain[i] = said(tree.RoleAssistant, answerSize)
			}
		}
		out, _, err := store.AppendChain(ctx, c.ID, head, chain)
		if err != nil {
			return p, err
		}
		if at := messages - tail - 1 - stored; at >= 0 && at < len(out) {
			cutoff = out[at].ID
		}
		stored, head = stored+len(out), out[len(out)-1].ID
	}
	if cutoff != uuid.Nil {
		if _, err := store.AddSummary(ctx, c.ID, tree.NewSummary{
			AnchorID: cutoff, Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "made up"}, Body: said(tree.RoleUser, 4*answerSize).Body,
		}); err != nil {
			return p, err
		}
	}
	return planted{c.ID, head}, nil
}
