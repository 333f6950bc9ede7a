// Package check ends a test whose set-up failed, waits for what a test can't be told of, and
// says in one line what most tests compare.
package check

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// T is a test, a benchmark or a rapid run.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NoError ends the test at an error.
func NoError(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must gives a call's result, and ends the test if the call failed.
func Must[R any](result R, err error) func(T) R {
	return func(t T) R {
		t.Helper()
		NoError(t, err)
		return result
	}
}

// JSON reads what a test got, and ends the test where it is no JSON of this shape.
func JSON(t T, got string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(got), out); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
}

// Equal holds that a test got what it wants.
func Equal[V comparable](t T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// That holds that something is so; else the message says what is.
func That(t T, is bool, format string, args ...any) {
	t.Helper()
	if !is {
		t.Errorf(format, args...)
	}
}

// Need is That, and ends the test where it isn't so.
func Need(t T, is bool, format string, args ...any) {
	t.Helper()
	if !is {
		t.Fatalf(format, args...)
	}
}

// Has holds that a text has all of these parts.
func Has(t T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: lacks %s: %s", what, part, text)
		}
	}
}

// Lacks holds that a text has none of these parts.
func Lacks(t T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: has %s: %s", what, part, text)
		}
	}
}

// Long skips a test that takes longer than each change can wait for, unless
// COPPICE_TEST_LONG is set, as .ci/full sets it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("COPPICE_TEST_LONG") == "" {
		t.Skip("COPPICE_TEST_LONG is not set")
	}
}

// Large skips a test of megabytes in a short run, as the race detector's is: to that, each
// byte that is read costs a hundred.
func Large(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it reads megabytes: not in a short run")
	}
}

// timeout is far longer than anything takes that tests wait for.
const timeout = 3 * time.Minute

// Eventually waits for what another goroutine or process does.
func Eventually(t T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", timeout, what)
		}
	}
}

// Fails holds that a call failed with this error.
func Fails[R any](_ R, err error) func(t T, what string, want error) {
	return func(t T, what string, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
}

// Must3 is Must for a call of three results, of which the second isn't wanted.
func Must3[R, S any](result R, _ S, err error) func(T) R { return Must(result, err) }
