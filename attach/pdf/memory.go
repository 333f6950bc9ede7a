//go:build linux || darwin

package pdf

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory gives a context in which PDFium takes its memory from the system, and
// not from the program's heap. The memory is mapped for its largest size, of which
// only touched pages count. So it grows without a copy, and release gives it back at
// once: on the heap each growth left the smaller memory behind until it was collected,
// and one PDF took a gigabyte. release comes when PDFium is closed.
func withMemory(ctx context.Context) (_ context.Context, release func()) {
	var all [][]byte
	allocate := func(_, most uint64) experimental.LinearMemory {
		m, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
		if err != nil {
			return mapped(make([]byte, most))
		}
		all = append(all, m)
		return mapped(m)
	}
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate)), func() {
		for _, m := range all {
			_ = syscall.Munmap(m)
		}
	}
}

// A mapped memory has its largest size from the start.
type mapped []byte

// Reallocate returns nil where the memory is too small.
func (m mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(m)) {
		return nil
	}
	return m[:size:size]
}

// Free leaves the memory to release, as PDFium's caller may still look there.
func (mapped) Free() {}
