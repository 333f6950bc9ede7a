package server

import (
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/search"
)

func recallTenant(r *Request) (Answer, error) {
	q, err := r.question()
	if err != nil {
		return nil, err
	}
	return answerRecall(r.Searches().RecallTenant(r.Context(), r.Store(), q))
}

func recallBranch(r *Request) (Answer, error) {
	q, err := r.question()
	if err != nil {
		return nil, err
	}
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	return answerRecall(r.Searches().Recall(r.Context(), r.Store(), id, head, q))
}

func answerRecall(found search.Answer, err error) (Answer, error) {
	if err != nil {
		return nil, err
	}
	buffer := buffers.Get().(*[]byte)
	return answer{status: http.StatusOK, body: found.AppendJSON((*buffer)[:0]), buffer: buffer}, nil
}

// question reads what the query says of a question. Package recall says what a
// question may be.
func (r *Request) question() (q search.Question, err error) {
	if q.Query, err = r.needs("query"); err != nil {
		return q, err
	}
	if scope := r.Query("scope"); scope != nil {
		if q.Scope = search.Scope(*scope); q.Scope == "" {
			return q, problemf(CodeInvalidParameter, "scope", "The scope is empty. Leave it out, or name one.")
		}
		if q.Scope == search.ScopeTenant && r.who.Conversation != uuid.Nil {
			return q, notPermitted("The key opens the conversation %s only.", r.who.Conversation)
		}
	}
	if limit := r.Query("limit"); limit != nil {
		if q.Limit, err = strconv.Atoi(*limit); err != nil || q.Limit == 0 {
			return q, problemf(CodeInvalidLimit, "limit", "Ask for 1 to %d messages.", search.MaxLimit)
		}
	}
	if most := r.Query("max_tokens"); most != nil {
		if q.MaxTokens, err = strconv.Atoi(*most); err != nil || q.MaxTokens == 0 {
			return q, problemf(CodeInvalidParameter, "max_tokens", "Ask for 1 to %d tokens.", search.MaxMaxTokens)
		}
	}
	return q, nil
}
