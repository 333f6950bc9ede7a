package transfer

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// What an import may take of memory: so many times the bytes of the largest
// conversation, and so many bytes on top.
const (
	memoryTimes = 8
	memoryFloor = 24 << 20
)

// memoryOf is the variable by which a test process is told which format and
// shape to import, and of what size.
const memoryOf = "COPPICE_TEST_MEMORY_OF"

// An import takes no more than a few times the bytes of the conversation,
// whatever the conversation is, with every format. Each is measured in a
// process of its own, by the heap that the process ever had of the operating
// system.
// Two shapes of each are always tried, and all with COPPICE_TEST_MEMORY, as CI
// does.
func TestImportMemory(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	for _, s := range samples {
		for _, shape := range slices.Sorted(maps.Keys(s.shapes(0))) {
			if os.Getenv("COPPICE_TEST_MEMORY") == "" && !strings.HasPrefix(shape, "many elements") && !strings.HasPrefix(shape, "as many") {
				continue
			}
			t.Run(s.format+"/"+shape, func(t *testing.T) {
				t.Parallel()
				took, report := memoryTaken(t, s.format, shape, size)
				if most := memoryTimes*size + memoryFloor; took > most {
					t.Errorf("%d bytes took %d, which is %.1f times as many (%s)", size, took, float64(took)/size, report)
				}
				t.Logf("%.1f times, %s", float64(took)/size, report)
			})
		}
	}
}

func memoryTaken(t *testing.T, format, shape string, size int) (took int, report string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestMemoryProcess$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", memoryOf, format, shape, size))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, line, _ := strings.Cut(string(out), "took ")
	line, _, _ = strings.Cut(line, "\n")
	if _, err := fmt.Sscanf(line, "%d", &took); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return took, line
}

// TestMemoryProcess is the process of TestImportMemory.
func TestMemoryProcess(t *testing.T) {
	var format, shape string
	var size int
	if parts := strings.Split(os.Getenv(memoryOf), "|"); len(parts) == 3 {
		format, shape = parts[0], parts[1]
		fmt.Sscan(parts[2], &size)
	} else {
		t.Skip("this is a part of TestImportMemory")
	}
	s := samples[slices.IndexFunc(samples, func(s sample) bool { return s.format == format })]
	in := s.shapes(size)[shape]
	before, after := new(runtime.MemStats), new(runtime.MemStats)
	debug.FreeOSMemory()
	runtime.ReadMemStats(before)
	// How far garbage runs ahead of its collector depends on how busy the machine
	// is: the collector begins early, so that the test measures what is held.
	debug.SetGCPercent(50)
	report, err := Import(t.Context(), nowhere{}, in, Options{Format: format, Workers: 4})
	runtime.ReadMemStats(after)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("took %d: %d messages, %d notes\n", after.HeapSys-before.HeapInuse, report.Messages, len(report.Notes))
}

// nowhere takes what Import would store.
type nowhere struct{}

func (nowhere) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (nowhere) Import(_ context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	return make([]tree.Imported, len(in)), nil
}
