package server

import (
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

func searchMessages(r *Request) (Answer, error) {
	query, err := r.needs("query")
	if err != nil {
		return nil, err
	}
	id, err := parseOptionalID(r.Query("conversation_id"), "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	find := r.Store().Search
	switch sort := r.Query("sort"); {
	case sort == nil || *sort == "newest":
	case *sort == "relevance":
		find = r.Store().SearchRanked
	default:
		return nil, problemf(CodeInvalidParameter, "sort", "%q is no order. Ask for newest or relevance.", clip(*sort))
	}
	hits, err := find(r.Context(), query, id, p)
	if err != nil {
		return nil, err
	}
	var titled []tree.Conversation
	if id == uuid.Nil && p.Cursor == "" {
		if titled, err = r.Store().SearchTitles(r.Context(), query); err != nil {
			return nil, err
		}
	}
	return answerHits(hits, titled)
}

// answerHits gives a page of hits, and conversations whose titles match, if there
// are some.
func answerHits(hits tree.Page[tree.Hit], titled []tree.Conversation) (answer, error) {
	a, err := answerPage(hits)
	if err != nil || len(titled) == 0 {
		return a, err
	}
	a.body, err = appendList(append(a.body[:len(a.body)-1], `,"conversations":`...), titled)
	a.body = append(a.body, '}')
	return a, err
}
