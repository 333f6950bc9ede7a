package replica

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// A read waits for every write that it could show: those of its conversation,
// those that named none, and, of a list, all of the tenant. It waits for no other
// tenant's. What a replica had and may have lost it waits for again.
func TestWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWritten()
		check.Need(t, w.wants("a", uuid.Nil) == nowhere,
			"before the start is known, a read waits for nothing")
		start := db.Position(rapid.IntRange(1, 100).Draw(t, "start"))
		w.settle(w.begun(), start)
		tenants := []string{"a", "b"}
		conversations := []uuid.UUID{uuid.Nil, {15: 1}, {15: 2}}
		type write struct {
			tenant       string
			conversation uuid.UUID
			at           db.Position
		}
		var writes []write
		end, unknown := start, false
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			default:
				end += db.Position(rapid.IntRange(1, 5).Draw(t, "grows"))
				x := write{rapid.SampledFrom(tenants).Draw(t, "tenant"), rapid.SampledFrom(conversations).Draw(t, "conversation"), end}
				w.note(x.tenant, x.conversation, x.at)
				writes = append(writes, x)
			case 6:
				w.advance(db.Position(rapid.IntRange(0, int(end)).Draw(t, "replayed")))
			case 7:
				w.forget()
			case 8:
				w.doubt()
			case 9:
				before := w.begun()
				if late := rapid.Bool().Draw(t, "late"); late {
					w.noteUnknown()
				}
				end++
				if w.settle(before, end); before != w.begun() && w.wants("a", uuid.Nil) != nowhere {
					t.Fatal("a position that was read before a write settles it")
				}
				unknown = before != w.begun()
				if unknown {
					w.settle(w.begun(), end)
				}
			}
			for _, tenant := range tenants {
				for _, conversation := range conversations {
					wants := w.wants(tenant, conversation)
					check.Need(t, wants >= start,
						"a read waits for %d, and the server began at %d", wants, start)
					served := max(wants, w.reached()) // the least that a replica has that is read from
					for _, x := range writes {
						shows := x.tenant == tenant && (conversation == uuid.Nil || x.conversation == conversation || x.conversation == uuid.Nil)
						check.Need(t, !shows || x.at <= served,
							"a read of %v of %s is served at %d, without a write at %d", conversation, tenant, served, x.at)
					}
				}
			}
		}
	})
}

// Writes of other conversations and tenants keep no read from the replica.
func TestWrittenElsewhere(t *testing.T) {
	t.Parallel()
	w := newWritten()
	w.settle(w.begun(), 10)
	here, there := uuid.UUID{15: 1}, uuid.UUID{15: 2}
	w.note("a", there, 20)
	for name, got := range map[string]db.Position{"another conversation": w.wants("a", here), "another tenant's": w.wants("b", there), "another tenant's lists": w.wants("b", uuid.Nil)} {
		check.Equal(t, name+" waits for", got, 10)
	}
	check.That(t, w.wants("a", there) == 20 && w.wants("a", uuid.Nil) == 20,
		"the conversation, or the list, doesn't wait")
	w.advance(20)
	if w.forget(); len(w.last) != 0 {
		t.Errorf("%v is remembered, and the replica has it", w.last)
	}
	if w.doubt(); w.reached() != 0 || w.wants("a", there) != 20 {
		t.Error("what a replica may have lost in a crash isn't waited for")
	}
}

// While a replica is away, memory is bounded and no write is forgotten.
func TestWrittenIsBounded(t *testing.T) {
	t.Parallel()
	w := newWritten()
	w.settle(w.begun(), 1)
	last := db.Position(0)
	for i := range mostPlaces + 10 {
		last = db.Position(i + 2)
		w.note("a", uuid.New(), last)
	}
	check.That(t, len(w.last) <= mostPlaces, "%d places", len(w.last))
	p := w.wants("a", uuid.New())
	check.That(t, p >= mostPlaces, "a read waits for %d only", p)
}

// A replica's age is counted from when it last was where the primary's log ended.
func TestLag(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var l lag
	check.Equal(t, "nothing is known of the primary", l.of(at(0), 5), 0)
	for s, end := range []db.Position{10, 20, 20, 20, 30} {
		l.sample(at(s), end)
	}
	for _, test := range []struct {
		replayed db.Position
		want     time.Duration
	}{
		{5, 5 * time.Second}, // at least
		{10, 5 * time.Second}, {19, 5 * time.Second},
		{20, 2 * time.Second}, // the primary wrote nothing for two seconds
		{29, 2 * time.Second},
		{30, 0}, {40, 0},
	} {
		got := l.of(at(5), test.replayed)
		check.That(t, got == test.want, "a replica at %d is %v behind, want %v", test.replayed, got, test.want)
	}
	for s := range 3 * keptSamples {
		l.sample(at(10+s), db.Position(100+s))
	}
	check.That(t, len(l.samples) <= keptSamples, "%d samples", len(l.samples))
}

func testTokens(t check.T) tokens {
	return check.Must(newTokens([]byte(strings.Repeat("k", 32))))(t)
}

// Tokens come back as the furthest of their positions, to their tenant only.
func TestTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := testTokens(t)
		furthest, sent := db.Position(0), []string{}
		for _, p := range rapid.SliceOfN(rapid.Int64Min(0), 1, 5).Draw(t, "positions") {
			furthest = max(furthest, db.Position(p))
			sent = append(sent, k.encrypt("a", db.Position(p)))
		}
		header := strings.Join(sent, rapid.SampledFrom([]string{",", ", ", " ,,"}).Draw(t, "between"))
		if p, err := k.furthest("a", header); err != nil || p != furthest {
			t.Fatalf("%d, %v, want %d", p, err, furthest)
		}
		if _, err := k.furthest("b", header); !errors.Is(err, fault.Invalid) {
			t.Fatalf("another tenant's token: %v", err)
		}
		at := rapid.IntRange(0, len(sent[0])-1).Draw(t, "changed")
		changed := sent[0][:at] + string(sent[0][at]^1) + sent[0][at+1:]
		if _, err := k.furthest("a", changed); err == nil && at < len(changed)-1 { // the last character has unused bits
			t.Fatalf("a changed token was taken: %q", changed)
		}
	})
}

// Nobody learns from two tokens whether something was written between.
func TestTokensTellNothing(t *testing.T) {
	t.Parallel()
	k := testTokens(t)
	seen := map[string]bool{}
	for range 100 {
		seen[k.encrypt("a", 7)] = true
	}
	check.That(t, len(seen) == 100, "%d different tokens of one position in 100", len(seen))
	for _, wrong := range []string{"x", "AAAA", strings.Repeat("A", 48), "0/3000148", "é"} {
		if _, err := k.furthest("a", wrong); !errors.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	p, err := k.furthest("a", "")
	check.That(t, p == 0 && err == nil, "no token: %d, %v", p, err)
}
