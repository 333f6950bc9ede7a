package bench

import (
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// A prompt cache hits on 95 % of what contexts hold, and more the larger the
// window is beside a turn. This one is half the default's.
func TestCache(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := tree.New(pool)
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens = 64_000, 8_000
	service, err := summarize.New(store, summarize.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	r, err := Cache(t.Context(), store, service, CacheConfig{Turns: 260, Progress: func(n int) error {
		if turns = n; n == 20 {
			_, err := pool.Exec(t.Context(), "analyze nodes")
			return err
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v: ours %.2f %%, a sliding window %.2f %%", r, r.Ours.Percent(), r.Sliding.Percent())
	if turns != 260 || r.Messages != 521 || r.Compactions < 3 || r.Model != digest.Name {
		t.Errorf("%d turns; %+v", turns, r)
	}
	if r.Ours.Percent() < 95 {
		t.Errorf("%.2f %% of the tokens are cached, and 95 are promised", r.Ours.Percent())
	}
	if r.Sliding.Percent() >= r.Ours.Percent() {
		t.Errorf("a sliding window does no worse: %.2f %%", r.Sliding.Percent())
	}
}

func TestCachedShare(t *testing.T) {
	t.Parallel()
	a, b, c, d := piece{"a", 1}, piece{"b", 10}, piece{"c", 100}, piece{"d", 1000}
	for _, test := range []struct {
		before, now []piece
		want        CachedShare
	}{
		{nil, []piece{a, b}, CachedShare{11, 0}},
		{[]piece{a}, []piece{a, b}, CachedShare{11, 1}},
		{[]piece{a, b, c}, []piece{a, c, d}, CachedShare{1101, 1}},
		{[]piece{a, b, c}, []piece{d, b, c}, CachedShare{1110, 0}},
		{[]piece{a, b, c}, []piece{a, b}, CachedShare{11, 11}},
	} {
		var got CachedShare
		if got.add(test.before, test.now); got != test.want {
			t.Errorf("%v, then %v: %+v, want %+v", test.before, test.now, got, test.want)
		}
	}
}
