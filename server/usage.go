package server

import "github.com/coppice-chat/coppice/tree"

// usageAnswer is the schema ConversationUsage.
type usageAnswer struct {
	Replies     usageOf `json:"replies"`
	Compactions usageOf `json:"compactions"`
	Titles      usageOf `json:"titles"`
}

type usageOf struct {
	Calls            int          `json:"calls"`
	PromptTokens     int          `json:"prompt_tokens"`
	CompletionTokens int          `json:"completion_tokens"`
	ReasoningTokens  int          `json:"reasoning_tokens"`
	Cost             *float64     `json:"cost"`
	Models           []modelUsage `json:"models"`
}

type modelUsage struct {
	Model            string   `json:"model"`
	Calls            int      `json:"calls"`
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	ReasoningTokens  int      `json:"reasoning_tokens"`
	Cost             *float64 `json:"cost"`
}

func getUsage(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	u, err := r.Store().Usage(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return answerStruct(usageAnswer{r.server.price(u.Replies), r.server.price(u.Compactions), r.server.price(u.Titles)})
}

// price sums usage up. The cost is that of the calls whose price is known, and
// null where none is.
func (s *Server) price(list []tree.ModelUsage) usageOf {
	sum := usageOf{Models: []modelUsage{}}
	for _, u := range list {
		m := modelUsage{u.Model, u.Calls, u.PromptTokens, u.CompletionTokens, u.ReasoningTokens, nil}
		if s.cfg.ModelCost != nil {
			if cost, known := s.cfg.ModelCost(u.Model, u.PromptTokens, u.CompletionTokens); known {
				if m.Cost = &cost; sum.Cost == nil {
					sum.Cost = new(float64)
				}
				*sum.Cost += cost
			}
		}
		sum.Calls += u.Calls
		sum.PromptTokens += u.PromptTokens
		sum.CompletionTokens += u.CompletionTokens
		sum.ReasoningTokens += u.ReasoningTokens
		sum.Models = append(sum.Models, m)
	}
	return sum
}
