package formattest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// What an import may take of memory: so many times the bytes of the largest
// conversation, and so many bytes on top.
const (
	memoryTimes = 8
	memoryFloor = 24 << 20
)

// memoryOf is the variable by which a test process is told which shape to
// import, and of what size.
const memoryOf = "COPPICE_TEST_MEMORY_OF"

// memory sees to it that an import takes no more than a few times the bytes of
// the conversation, whatever the conversation is. Each shape is measured in a
// process of its own, by the heap that the process ever had of the operating
// system. It runs only with COPPICE_TEST_MEMORY, which .ci/full sets.
func (s Suite) memory(t *testing.T) {
	if os.Getenv("COPPICE_TEST_MEMORY") == "" {
		t.Skip("COPPICE_TEST_MEMORY is not set")
	}
	const size = 8 << 20
	names := strings.Split(t.Name(), "/")
	test := "^" + names[0] + "$/^" + names[1] + "$"
	for _, shape := range slices.Sorted(maps.Keys(s.Sample.shapes(0))) {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			took, report := memoryTaken(t, test, shape, size)
			if most := memoryTimes*size + memoryFloor; took > most {
				t.Errorf("%d bytes took %d, which is %.1f times as many (%s)", size, took, float64(took)/size, report)
			}
			t.Logf("%.1f times, %s", float64(took)/size, report)
		})
	}
}

func memoryTaken(t *testing.T, test, shape string, size int) (took int, report string) {
	t.Helper()
	self, err := os.Executable()
	check.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run", test, "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", memoryOf, shape, size))
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

// measured tells whether this is a process of memory, and does its work.
func (s Suite) measured(t *testing.T) bool {
	shape, text, there := strings.Cut(os.Getenv(memoryOf), "|")
	if !there {
		return false
	}
	var size int
	check.Must(fmt.Sscan(text, &size))(t)
	in := s.Sample.shapes(size)[shape]
	before, after := new(runtime.MemStats), new(runtime.MemStats)
	debug.FreeOSMemory()
	runtime.ReadMemStats(before)
	// How far garbage runs ahead of its collector depends on how busy the machine
	// is: the collector begins early, so that the test measures what is held.
	debug.SetGCPercent(20)
	report, err := transfer.Import(t.Context(), StoreFunc(func(context.Context, []tree.Bundle) error { return nil }), in, transfer.Options{Format: s.Name, Workers: 4})
	runtime.ReadMemStats(after)
	if err != nil && !errors.Is(err, fault.TooLarge) && fault.Of(err).Code != transfer.CodeFormat { // a shape may leave no message
		t.Fatal(err)
	}
	fmt.Printf("took %d: %d messages, %d notes\n", after.HeapSys-before.HeapInuse, report.Messages, len(report.Notes))
	return true
}
