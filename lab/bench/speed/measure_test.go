package speed

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	counting := func(name string, bytes int) job {
		return func(context.Context) (int, error) { calls[name]++; return bytes, nil }
	}
	variants := []variant{
		{name: "ours", jobs: []job{counting("ours", 10)}, cost: noMeter{}, most: 3},
		{name: "floor", jobs: []job{counting("floor", 4)}, cost: noMeter{}, most: 2},
	}
	c, err := compare(t.Context(), pace{rounds: 4, slice: time.Minute}, "work", variants, "floor")
	if err != nil {
		t.Fatal(err)
	}
	// The turn to warm up isn't counted.
	if calls["ours"] != 5*3 || calls["floor"] != 5*2 || c.Results[0].Jobs != 4*3 || c.Results[1].Jobs != 4*2 {
		t.Errorf("%v jobs were done, and %d and %d counted", calls, c.Results[0].Jobs, c.Results[1].Jobs)
	}
	if c.Results[0].Bytes != 10 || c.Results[0].Ratios["floor"].P50.Median <= 0 || len(c.Results[1].Ratios) != 0 {
		t.Errorf("%+v", c.Results)
	}
	failure := errors.New("no")
	variants[1].jobs = []job{func(context.Context) (int, error) { return 0, failure }}
	if _, err := compare(t.Context(), pace{rounds: 1, slice: time.Minute}, "work", variants); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := 100; i > 0; i-- {
		times = append(times, time.Duration(i))
	}
	if p50, p99 := quantile(times, 0.5), quantile(times, 0.99); p50 != 51 || p99 != 100 {
		t.Errorf("of 1 to 100, the middle is %d and the 99th %d", p50, p99)
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("nothing has a quantile")
	}
	if s := spreadOf([]float64{5, 1, 4, 2, 3}); s != (Spread{3, 2, 4}) {
		t.Errorf("%+v", s)
	}
	if s := spreadOf(nil); s != (Spread{}) {
		t.Errorf("%+v", s)
	}
	if q := quotients([]float64{6, 1}, []float64{2, 4}); q[0] != 3 || q[1] != 0.25 {
		t.Errorf("%v", q)
	}
}

func TestOwnMeter(t *testing.T) {
	t.Parallel()
	before, err := ownMeter{}.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held = make([]byte, 10<<20)
	after, err := ownMeter{}.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if used := after.minus(before); used.bytes < 10<<20 || used.allocs < 1 || math.IsNaN(used.bytes) {
		t.Errorf("%+v for 10 MB", used)
	}
}

var held []byte
