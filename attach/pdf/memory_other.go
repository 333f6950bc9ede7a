//go:build !linux && !darwin

package pdf

import "context"

// withMemory leaves PDFium's memory to the program's heap.
func withMemory(ctx context.Context) (_ context.Context, release func()) { return ctx, func() {} }
