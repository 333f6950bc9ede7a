package search

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// Two rankings are made one by reciprocal rank fusion: a message's score is the
// sum of 1/(fusionK + rank) over the rankings that have it. Cormack, Clarke and
// Büttcher, Reciprocal Rank Fusion outperforms Condorcet and individual Rank
// Learning Methods (SIGIR 2009), found 60 to serve well.
const (
	fusionK     = 60
	fusionDepth = 100 // messages of each ranking that count
)

// A meaning is the vector of a question, and the model that made it. The vector
// has no dimensions where there is none.
type meaning struct {
	model  string
	vector embed.Vector
}

// meaningOf gives a function that asks the model once, when it is called first;
// nil where no model is configured.
func (s *Service) meaningOf(ctx context.Context, question string) func() meaning {
	if s.embed == nil {
		return nil
	}
	return sync.OnceValue(func() meaning { return meaning{s.embed.Model(), s.embed.Question(ctx, question)} })
}

func (q Question) means() (m meaning, ok bool) {
	if q.meaning != nil {
		m = q.meaning()
	}
	return m, m.vector.Dimensions() > 0
}

// byWords is the ranking of a question where no vector counted.
func (q Question) byWords() Ranking {
	if q.meaning == nil {
		return ""
	}
	return RankingWords
}

// A stored vector is that of a message of a version: another message under the
// same id has no use for it.
type stored struct {
	version tree.Version
	data    []byte
	norm    float32
}

const storedBytes = 96 // of a vector, besides its data

// loadVectors reads the vectors that were stored since the last question, if there
// is one to compare them with. They are those of the whole conversation, as a
// background job makes them in no order.
func (c *conversation) loadVectors(ctx context.Context, store *tree.Store, q Question) error {
	m, ok := q.means()
	if !ok {
		return nil
	}
	c.mu.RLock()
	x := c.index
	last := x.stamp
	c.mu.RUnlock()
	err := store.Index().Embeddings(ctx, c.key.id, m.model, last, func(e tree.Embedding, stamp int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if old, known := x.vectors[e.MessageID]; known {
			x.bytes -= int64(len(old.data)) + storedBytes
		}
		x.vectors[e.MessageID] = stored{e.Version, e.Vector, embed.Norm(e.Vector)}
		x.bytes += int64(len(e.Vector)) + storedBytes
		last = stamp
	})
	if err == nil {
		c.mu.Lock()
		x.stamp = max(x.stamp, last)
		c.mu.Unlock()
	}
	return err
}

// answers ranks a scope for a question: by words, and by vectors where the
// question has one and messages of the scope have.
func (x *index) answers(s *scope, q Question) ([]ranked, Ranking) {
	var near []ranked
	if m, ok := q.means(); ok {
		near = x.nearest(s, m.vector, fusionDepth)
	}
	if len(near) == 0 {
		return x.rank(s, q.Query, q.Limit, nil), q.byWords()
	}
	words := x.rank(s, q.Query, max(q.Limit, fusionDepth), nil)
	scores := fuse(numbers(words), numbers(near))
	var all []ranked
	for n, score := range scores {
		all = append(all, ranked{n, score})
	}
	return x.best(all, q.Limit), RankingEmbeddings
}

func numbers(all []ranked) []int32 {
	out := make([]int32, len(all))
	for i, r := range all {
		out[i] = r.number
	}
	return out
}

// fuse gives the scores of all that rankings have, each best first.
func fuse[T comparable](rankings ...[]T) map[T]float64 {
	scores := map[T]float64{}
	for _, r := range rankings {
		for i, v := range r {
			scores[v] += 1 / float64(fusionK+i+1)
		}
	}
	return scores
}

// nearest gives the entries of a scope whose vectors point most nearly as one
// does, nearest first. It compares all of them.
func (x *index) nearest(s *scope, v embed.Vector, limit int) (all []ranked) {
	for _, n := range s.members {
		e := &x.entries[n]
		vector, known := x.vectors[e.id]
		if !known || vector.version != e.version {
			continue
		}
		if cosine := v.Cosine(vector.data, vector.norm); cosine > 0 {
			all = x.keep(all, ranked{n, cosine}, limit)
		}
	}
	return x.best(all, limit)
}

// near gives the places in a tenant's conversations whose vectors point most
// nearly as the question's, nearest first; none where there is no vector.
func (s *Service) near(ctx context.Context, store *tree.Store, q Question) ([]tree.Place, error) {
	m, ok := q.means()
	if !ok {
		return nil, nil
	}
	places, indexed, err := store.Index().NearestEmbeddings(ctx, m.model, m.vector.Stored(), fusionDepth)
	if err != nil || indexed {
		return places, err
	}
	type near struct {
		tree.Place
		cosine float64
	}
	var all []near
	if err := store.Index().NewestEmbeddings(ctx, m.model, func(p tree.Place, vector []byte) {
		if cosine := m.vector.Cosine(vector, embed.Norm(vector)); cosine > 0 {
			all = append(all, near{p, cosine})
		}
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), compareIDs(a.MessageID, b.MessageID))
	})
	for _, n := range all[:min(len(all), fusionDepth)] {
		places = append(places, n.Place)
	}
	return places, nil
}

// A picked message is a hit that was chosen before the conversation is asked for
// its text.
type picked struct {
	id    uuid.UUID
	score float64
}

// picks gives the entries of picked messages that are still there.
func (x *index) picks(all []picked) (out []ranked) {
	for _, p := range all {
		if n, known := x.byID[p.id]; known {
			out = append(out, ranked{n, p.score})
		}
	}
	return out
}
