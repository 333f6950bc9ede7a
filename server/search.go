package server

func search(r *Request) (Answer, error) {
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
	hits, err := r.Store().Search(r.Context(), query, id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(hits)
}
