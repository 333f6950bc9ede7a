package server

// ratingsAnswer is the schema Ratings.
type ratingsAnswer struct {
	Data          []modelRatings `json:"data"`
	Conversations int            `json:"conversations"`
	Complete      bool           `json:"complete"`
}

type modelRatings struct {
	Model        string `json:"model"`
	Answers      int    `json:"answers"`
	Kept         int    `json:"kept"`
	Compared     int    `json:"compared"`
	ComparedKept int    `json:"compared_kept"`
	RatedUp      int    `json:"rated_up"`
	RatedDown    int    `json:"rated_down"`
}

func getRatings(r *Request) (Answer, error) {
	read, err := r.Store().Ratings(r.Context())
	if err != nil {
		return nil, err
	}
	a := ratingsAnswer{Data: make([]modelRatings, len(read.Models)), Conversations: read.Conversations, Complete: read.Complete}
	for i, m := range read.Models {
		a.Data[i] = modelRatings(m)
	}
	return answerStruct(a)
}
