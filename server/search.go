package server

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

func searchMessages(r *Request) (Answer, error) {
	query, err := r.needs("query")
	if err != nil {
		return nil, err
	}
	var in search.Within
	if in.ConversationID, err = parseOptionalID(r.Query("conversation_id"), "conversation_id"); err != nil {
		return nil, err
	}
	if in.Since, err = r.time("since"); err != nil {
		return nil, err
	}
	if in.Before, err = r.time("before"); err != nil {
		return nil, err
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	find := r.Searches().Messages
	switch sort := r.Query("sort"); {
	case sort == nil || *sort == "newest":
	case *sort == "relevance":
		find = r.Searches().Ranked
	default:
		return nil, problemf(CodeInvalidParameter, "sort", "%q is no order. Ask for newest or relevance.", clip(*sort))
	}
	hits, err := find(r.Context(), r.Store(), query, in, p)
	if err != nil {
		return nil, err
	}
	var titled []tree.Conversation
	if in == (search.Within{}) && p.Cursor == "" {
		if titled, err = r.Searches().Titles(r.Context(), r.Store(), query); err != nil {
			return nil, err
		}
	}
	return answerHits(hits, titled)
}

// answerHits gives a page of hits, and conversations whose titles match, if there
// are some.
func answerHits(hits search.Page, titled []tree.Conversation) (answer, error) {
	a, err := answerFound(hits.Page, hits.Incomplete)
	if err != nil || len(titled) == 0 {
		return a, err
	}
	a.body, err = appendList(append(a.body[:len(a.body)-1], `,"conversations":`...), titled)
	a.body = append(a.body, '}')
	return a, err
}

// answerFound gives a page, and says where messages weren't looked at because they
// aren't indexed yet.
func answerFound[T json.Marshaler](page tree.Page[T], incomplete bool) (answer, error) {
	a, err := answerPage(page)
	if err == nil && incomplete {
		a.body = append(a.body[:len(a.body)-1], `,"incomplete":true}`...)
	}
	return a, err
}
