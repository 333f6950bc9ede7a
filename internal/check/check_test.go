package check

import (
	"fmt"
	"io"
	"testing"
)

// A told test is one that panics where it fails.
type told struct{ testing.TB }

func (*told) Helper()               {}
func (*told) Fatal(...any)          { panic("failed") }
func (*told) Errorf(string, ...any) { panic("failed") }
func (*told) Fatalf(string, ...any) { panic("failed") }

// TestChecks holds that each check fails where it should, and nowhere else.
func TestChecks(t *testing.T) {
	t.Parallel()
	for fails, all := range map[bool][]func(T){
		false: {
			func(t T) { Equal(t, "", 1, 1) }, func(t T) { That(t, true, "") }, func(t T) { Need(t, true, "") },
			func(t T) { Has(t, "", "ab", "a", "b") }, func(t T) { Lacks(t, "", "ab", "c") }, func(t T) { JSON(t, "1", new(int)) },
			func(t T) { Fails(0, fmt.Errorf("x: %w", io.EOF))(t, "", io.EOF) }, func(t T) { Must(0, nil)(t) },
		},
		true: {
			func(t T) { Equal(t, "", 1, 2) }, func(t T) { That(t, false, "") }, func(t T) { Need(t, false, "") },
			func(t T) { Has(t, "", "ab", "a", "c") }, func(t T) { Lacks(t, "", "ab", "c", "b") }, func(t T) { JSON(t, "x", new(int)) },
			func(t T) { Fails(0, nil)(t, "", io.EOF) }, func(t T) { Must(0, io.EOF)(t) },
		},
	} {
		for i, f := range all {
			func() {
				defer func() {
					if failed := recover() != nil; failed != fails {
						t.Errorf("check %d: that it fails is %t, want %t", i, failed, fails)
					}
				}()
				f(new(told))
			}()
		}
	}
}
