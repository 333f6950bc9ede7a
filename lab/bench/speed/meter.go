package speed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

// A usage is what a process has used since it began.
type usage struct {
	allocs, bytes float64 // on the heap, ever
	cpu           float64 // seconds
}

func (u usage) plus(v usage) usage {
	return usage{u.allocs + v.allocs, u.bytes + v.bytes, u.cpu + v.cpu}
}

func (u usage) minus(v usage) usage {
	return usage{u.allocs - v.allocs, u.bytes - v.bytes, u.cpu - v.cpu}
}

// A meter reads what a process has used. The difference of two readings is
// what was used between them, and not by the readings.
type meter interface {
	read(ctx context.Context) (usage, error)
}

// ownMeter reads this process.
type ownMeter struct{}

func (ownMeter) read(context.Context) (usage, error) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return usage{allocs: float64(samples[0].Value.Uint64()), bytes: float64(samples[1].Value.Uint64())}, nil
}

// noMeter knows nothing.
type noMeter struct{}

func (noMeter) read(context.Context) (usage, error) { return usage{}, nil }

// A serverMeter reads a server's /metrics, and keeps an eye on its memory.
type serverMeter struct {
	mu     sync.Mutex
	client *client
	pid    int
	own    usage // what one reading costs
	done   int   // readings
	memory float64
}

// newServerMeter finds out what a reading costs by reading.
func newServerMeter(ctx context.Context, addr string, pid int) (*serverMeter, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	m := &serverMeter{client: c, pid: pid}
	const readings = 20
	for range 3 { // the first ones make what the later ones use
		if _, err := m.read(ctx); err != nil {
			return nil, err
		}
	}
	before, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	for range readings - 1 {
		if _, err := m.read(ctx); err != nil {
			return nil, err
		}
	}
	after, err := m.read(ctx)
	used := after.minus(before)
	m.own = usage{used.allocs / readings, used.bytes / readings, used.cpu / readings}
	m.done = 0
	return m, err
}

func (m *serverMeter) read(context.Context) (usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.client.do("GET", "/metrics", nil, 200)
	if err != nil {
		return usage{}, err
	}
	var u usage
	found := 0
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		var into *float64
		switch name {
		case "go_memstats_mallocs_total":
			into = &u.allocs
		case "go_memstats_alloc_bytes_total":
			into = &u.bytes
		case "process_cpu_seconds_total":
			into = &u.cpu
		case "process_resident_memory_bytes":
			into = new(float64)
		default:
			continue
		}
		if *into, err = strconv.ParseFloat(value, 64); err != nil {
			return usage{}, fmt.Errorf("/metrics: %s: %w", name, err)
		}
		if found++; name == "process_resident_memory_bytes" {
			m.memory = max(m.memory, *into)
		}
	}
	if found < 2 {
		return usage{}, fmt.Errorf("/metrics has no figures of the process")
	}
	m.done++
	n := float64(m.done)
	return u.minus(usage{n * m.own.allocs, n * m.own.bytes, n * m.own.cpu}), nil
}

// peak is the most memory that the server held, in bytes: by the kernel's
// count where that can be asked, else what readings saw.
func (m *serverMeter) peak() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return m.memory
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64); err == nil {
				return max(m.memory, 1024*kb)
			}
		}
	}
	return m.memory
}

func (m *serverMeter) close() { m.client.close() }
