package pdf

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// The PDFium of the program is that of the module's version.
func TestPackedIsTheModules(t *testing.T) {
	t.Parallel()
	dir := check.Must(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klippa-app/go-pdfium").Output())(t)
	want := check.Must(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "webassembly", "pdfium.wasm")))(t)
	if *check.Update {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := w.Write(want); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		check.NoError(t, os.WriteFile("pdfium.wasm.gz", b.Bytes(), 0o644))
		t.Skip("written; run the test again without -update")
	}
	if got, err := unpack(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("pdfium.wasm.gz has %d bytes, %v, and the module %d: run this test with -update", len(got), err, len(want))
	}
}
