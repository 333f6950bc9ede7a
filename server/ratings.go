package server

func getRatings(r *Request) (Answer, error) {
	ratings, err := r.Store().Ratings(r.Context())
	if err != nil {
		return nil, err
	}
	return answerStruct(ratings)
}
