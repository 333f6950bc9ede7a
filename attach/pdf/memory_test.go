//go:build linux || darwin

package pdf

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/coppice-chat/coppice/attach/pdf/pdftest"
)

// TestMemoryIsNotTheProgramsOwn reads a PDF that unpacks to more than PDFium may have,
// and counts what the program's heap gave meanwhile. It runs alone, as the heap is
// that of all tests.
func TestMemoryIsNotTheProgramsOwn(t *testing.T) {
	if _, err := Text(t.Context(), pdftest.Pages("Hazel."), most); err != nil { // which compiles PDFium
		t.Fatal(err)
	}
	bomb := pdftest.File(catalog, onePage, page, packed(t, bytes.Repeat([]byte("q "), 1<<19), 400), font)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Text(t.Context(), bomb, most)
	runtime.ReadMemStats(&after)
	if given := after.TotalAlloc - before.TotalAlloc; given > maxMemory/2 {
		t.Errorf("a PDF of %d bytes took %d MiB of the heap (%v)", len(bomb), given>>20, err)
	} else {
		t.Logf("a PDF of %d bytes took %d MiB of the heap (%v)", len(bomb), given>>20, err)
	}
}
