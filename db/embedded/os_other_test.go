//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package embedded

import (
	"errors"
	"testing"
)

func TestStartIsUnsupported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Start(t.Context(), Config{DataDir: dir}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Start: got %v, want %v", err, errors.ErrUnsupported)
	}
	if _, err := Attach(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Attach: got %v, want %v", err, ErrNotRunning)
	}
}
