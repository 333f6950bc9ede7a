package recall

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/recall/embed"
	"github.com/coppice-chat/coppice/tree"
)

// Fusion adds 1/(60 + rank) of each ranking that has a message.
func TestFuse(t *testing.T) {
	t.Parallel()
	scores := fuse([]string{"a", "b", "c"}, []string{"c", "d"})
	for what, want := range map[string]float64{"a": 1. / 61, "b": 1. / 62, "c": 1./63 + 1./61, "d": 1. / 62} {
		if got := scores[what]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %f, want %f", what, got, want)
		}
	}
}

// A vector of another version is that of a message which is gone: it says nothing
// of the message that has the id now.
func TestVectorsOfOtherVersions(t *testing.T) {
	t.Parallel()
	vector := []float32{1, 0.5}
	x := newIndex()
	ids := []uuid.UUID{uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())}
	for n, id := range ids {
		x.entries = append(x.entries, entry{id: id, parent: int32(n - 1), depth: int32(n), version: tree.Version(n + 1)})
	}
	data := embed.Encode(vector)
	x.vectors[ids[0]] = stored{version: 1, data: data, norm: embed.Norm(data)}
	x.vectors[ids[1]] = stored{version: 7, data: data, norm: embed.Norm(data)}
	if near := x.nearest(x.everything(), embed.VectorOf(vector), fusionDepth); len(near) != 1 || near[0].number != 0 {
		t.Errorf("near are %+v, want the first alone", near)
	}
}

func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			vector := func() []float32 {
				v := make([]float32, 1536)
				for i := range v {
					v[i] = float32(random.NormFloat64())
				}
				return v
			}
			x := newIndex()
			data := embed.Encode(vector())
			for i := range n {
				id := uuid.Must(uuid.NewV7())
				x.entries = append(x.entries, entry{id: id, parent: int32(i - 1), depth: int32(i)})
				x.vectors[id] = stored{data: append([]byte(nil), data...), norm: embed.Norm(data)}
			}
			s, question := x.everything(), embed.VectorOf(vector())
			for b.Loop() {
				x.nearest(s, question, fusionDepth)
			}
		})
	}
}
