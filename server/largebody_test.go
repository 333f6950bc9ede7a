package server

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A body takes memory as it comes, whatever length its client says.
func TestReadSized(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 5*firstRead + 7, 32 << 20} {
		want := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		got, err := readSized(iotest.HalfReader(bytes.NewReader(want)), size)
		if err != nil || !bytes.Equal(got, want) || cap(got) > max(size, firstRead) {
			t.Errorf("%d bytes: %d came, in memory for %d, %v", size, len(got), cap(got), err)
		}
	}
	for _, sent := range []int{0, 10, firstRead, firstRead + 1} {
		got, err := readSized(strings.NewReader(strings.Repeat("x", sent)), 32<<20)
		if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > 5*firstRead {
			t.Errorf("of 32 MiB come %d bytes, in memory for %d: %v", sent, cap(got), err)
		}
	}
}
