package dbtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Example returns a pool as [New] does, for an example in the documentation. An
// example has no test that ends, so it calls done. Example panics where New fails
// a test.
func Example(options ...Option) (pool *pgxpool.Pool, done func()) {
	e := new(example)
	return New(e, options...), e.end
}

// An example stands in for the test that an example doesn't have. It has those
// methods of testing.TB that this package calls.
type example struct {
	testing.TB // nil
	cleanups   []func()
}

func (*example) Helper()                         {}
func (*example) Logf(string, ...any)             {}
func (*example) Errorf(text string, args ...any) { panic(fmt.Sprintf(text, args...)) }
func (*example) Fatalf(text string, args ...any) { panic(fmt.Sprintf(text, args...)) }
func (e *example) Cleanup(f func())              { e.cleanups = append(e.cleanups, f) }

func (e *example) end() {
	for _, f := range slices.Backward(e.cleanups) {
		f()
	}
}
