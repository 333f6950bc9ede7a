package tree

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// sizes remembers about how many messages tenants have, which decides how their
// words are indexed: counted once in an hour, and what was stored here since.
type sizes struct {
	mu      sync.Mutex
	tenants map[string]*size
}

type size struct {
	messages int64
	counted  time.Time
}

const (
	sizesAge    = time.Hour
	mostTenants = 10_000 // remembered; about a megabyte
)

func newSizes() *sizes { return &sizes{tenants: map[string]*size{}} }

// add counts messages in and gives how many there are then, or not ok where that
// isn't known.
func (z *sizes) add(tenant string, messages int64) (_ int64, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t := z.tenants[tenant]
	if t == nil || time.Since(t.counted) > sizesAge {
		return 0, false
	}
	t.messages += messages
	return t.messages, true
}

func (z *sizes) set(tenant string, messages int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(z.tenants) >= mostTenants {
		clear(z.tenants)
	}
	z.tenants[tenant] = &size{messages, time.Now()}
}

// messages is about how many the tenant has with those that are about to be
// stored. That they may not be stored in the end makes no difference.
func (s *Store) messages(ctx context.Context, added int) (int64, error) {
	if n, ok := s.sizes.add(s.tenant, int64(added)); ok {
		return n, nil
	}
	n, err := s.q.CountMessages(ctx, s.tenant)
	if err != nil {
		return 0, err
	}
	n += int64(added)
	s.sizes.set(s.tenant, n)
	return n, nil
}

// searchKey is that of one message that is about to be stored.
func (s *Store) searchKey(ctx context.Context, body json.RawMessage, search pgtype.Text) (string, error) {
	n, err := s.messages(ctx, 1)
	if err != nil {
		return "", err
	}
	return db.SearchKey(s.tenant, n, textBytes(body, search)), nil
}

// copyNodes stores nodes, with their search keys.
func (s *Store) copyNodes(ctx context.Context, rows []db.CopyNodesParams) error {
	n, err := s.messages(ctx, messageCount(rows))
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Kind == string(KindMessage) {
			rows[i].SearchKey = pgtype.Text{String: db.SearchKey(s.tenant, n, textBytes(row.Body, row.SearchText)), Valid: true}
		}
	}
	_, err = s.q.CopyNodes(ctx, rows)
	return err
}

// textBytes is about how long the text is that is searched.
func textBytes(body json.RawMessage, search pgtype.Text) int {
	if search.Valid {
		return len(search.String)
	}
	return len(body)
}
