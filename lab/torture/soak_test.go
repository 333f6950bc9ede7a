package torture

import (
	"testing"
	"time"
)

func TestAssess(t *testing.T) {
	t.Parallel()
	// 100 samples of a server whose memory is as at says, and all else even.
	series := func(at func(i int) float64) (all []sample) {
		for i := range 100 {
			all = append(all, sample{time.Duration(i) * time.Second, map[string]float64{
				"process_resident_memory_bytes": at(i), "go_memstats_heap_inuse_bytes": 10 << 20, "go_goroutines": 20, "process_open_fds": 20, "coppice_pool_connections": 5,
			}})
		}
		return all
	}
	const mib = 1 << 20
	for _, test := range []struct {
		name string
		at   func(i int) float64
		flat bool
	}{
		{"even", func(int) float64 { return 80 * mib }, true},
		{"a jump while it warms up", func(i int) float64 {
			if i < 5 {
				return 20 * mib
			}
			return 80 * mib
		}, true},
		{"up and down", func(i int) float64 { return float64(70+i%20) * mib }, true},
		{"half a MiB more with each sample", func(i int) float64 { return (80 + float64(i)/2) * mib }, false},
	} {
		found := assess("a", series(test.at))
		if len(found) != len(gauges) {
			t.Fatalf("%s: %d gauges", test.name, len(found))
		}
		for i, g := range found {
			if want := i > 0 || test.flat; g.Flat != want {
				t.Errorf("%s: %s is flat: %v, want %v: %+v", test.name, g.Name, g.Flat, want, g)
			}
		}
	}
	if assess("a", nil) != nil {
		t.Error("something of no samples")
	}
}
