package tree

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
)

// sizes remembers about how much tenants have said, which decides how their
// words are indexed: how many messages they have, counted once in an hour, and
// what was stored here since; and how long those are in the mean.
//
// A count reads a row of each of the tenant's conversations. So all that need it
// share one, beside their own work, and meanwhile take what was counted before. The
// first count of a tenant has countWait, which is enough for most; an append then
// goes on with a guess.
type sizes struct {
	count func(ctx context.Context, tenant string) (int64, error) // on a connection of its own

	mu       sync.Mutex
	tenants  map[string]*size
	counting map[string]chan struct{} // closed when the count of a tenant has ended
}

type size struct {
	messages    int64
	counted     time.Time
	seen, bytes int64 // messages stored here, and their text
}

const (
	sizesAge    = time.Hour
	mostTenants = 10_000 // remembered; about a megabyte

	countWait    = 50 * time.Millisecond
	countTimeout = 10 * time.Minute
	// guessed is taken for the messages of a tenant that are not counted yet: an
	// index for a thousand fits ten thousand well enough.
	guessed = 10_000

	// What a tenant is taken for at first, so that its mean doesn't begin with
	// the length of one message.
	firstSeen, firstBytes = 16, 16_000
)

func newSizes(h db.Handle) *sizes {
	z := &sizes{tenants: map[string]*size{}, counting: map[string]chan struct{}{}}
	switch h.(type) {
	case *pgxpool.Pool, *db.TenantPool:
		z.count = db.New(h).CountMessages
	}
	return z
}

// add counts messages in and gives how many there are then, and their mean
// length. It is not ok where that isn't known, and not fresh where it was counted
// long ago.
func (z *sizes) add(tenant string, added, bytes int64) (messages int64, mean int, fresh, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t := z.tenants[tenant]
	if t == nil {
		return 0, 0, false, false
	}
	t.messages += added
	t.seen += added
	t.bytes += bytes
	return t.messages, int(t.bytes / t.seen), time.Since(t.counted) <= sizesAge, true
}

// set remembers a count. The mean goes on.
func (z *sizes) set(tenant string, messages int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if t := z.tenants[tenant]; t != nil {
		t.messages, t.counted = messages, time.Now()
		return
	}
	if len(z.tenants) >= mostTenants {
		clear(z.tenants)
	}
	z.tenants[tenant] = &size{messages: messages, counted: time.Now(), seen: firstSeen, bytes: firstBytes}
}

// recount begins a count of a tenant's messages, or finds the one that is under
// way, and returns what is closed at its end.
func (z *sizes) recount(tenant string) <-chan struct{} {
	z.mu.Lock()
	defer z.mu.Unlock()
	if ended, ok := z.counting[tenant]; ok {
		return ended
	}
	ended := make(chan struct{})
	z.counting[tenant] = ended
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
		defer cancel()
		if n, err := z.count(ctx, tenant); err == nil { // else the next append begins another
			z.set(tenant, n)
		}
		z.mu.Lock()
		defer z.mu.Unlock()
		delete(z.counting, tenant)
		close(ended)
	}()
	return ended
}

// keyFor is the search key of messages that are about to be stored, with so much
// text. That they may not be stored in the end makes no difference.
func (s *Store) keyFor(ctx context.Context, added, bytes int64) (string, error) {
	n, mean, fresh, ok := s.sizes.add(s.tenant, added, bytes)
	if !fresh && s.sizes.count == nil { // the caller's transaction or connection is the only one
		n, err := s.q.CountMessages(ctx, s.tenant)
		if err != nil {
			return "", err
		}
		s.sizes.set(s.tenant, n)
		return s.keyFor(ctx, added, bytes)
	}
	if !fresh {
		counted := s.sizes.recount(s.tenant)
		if !ok {
			select {
			case <-counted:
			case <-time.After(countWait):
			case <-ctx.Done():
			}
			if n, mean, _, ok = s.sizes.add(s.tenant, added, bytes); !ok {
				n, mean = guessed, firstBytes/firstSeen
			}
		}
	}
	return db.SearchKey(s.tenant, n, mean), nil
}

// searchKey is that of one message.
func (s *Store) searchKey(ctx context.Context, body json.RawMessage, search pgtype.Text) (string, error) {
	return s.keyFor(ctx, 1, textBytes(body, search))
}

// copyNodes stores nodes, with their search keys.
func (s *Store) copyNodes(ctx context.Context, rows []db.CopyNodesParams) error {
	var messages, bytes int64
	for _, row := range rows {
		if row.Kind == string(KindMessage) {
			messages++
			bytes += textBytes(row.Body, row.SearchText)
		}
	}
	key, err := s.keyFor(ctx, messages, bytes)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Kind == string(KindMessage) {
			rows[i].SearchKey = pgtype.Text{String: key, Valid: true}
		}
	}
	_, err = s.q.CopyNodes(ctx, rows)
	return err
}

// textBytes is about how long the text is that is searched.
func textBytes(body json.RawMessage, search pgtype.Text) int64 {
	if search.Valid {
		return int64(len(search.String))
	}
	return int64(len(body))
}
