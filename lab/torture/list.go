package torture

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// checkLists compares each tenant's list of conversations with those that were
// made for it.
func (r *run) checkLists(ctx context.Context) {
	for _, t := range r.tenants {
		r.checkList(ctx, t)
	}
}

func (r *run) checkList(ctx context.Context, t *tenant) {
	known := map[uuid.UUID]*conversation{}
	for _, c := range r.all {
		known[c.id] = c
	}
	listed := map[uuid.UUID]bool{}
	before := time.Now()
	for cursor := ""; ; {
		var page struct {
			Data       []shownConversation
			NextCursor *string `json:"next_cursor"`
		}
		path := "/v1/conversations?limit=200"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		if a := r.client.as(t).do(ctx, nil, r.any(), http.MethodGet, path, nil, &page); a.outcome() != acknowledged {
			r.report.violate("lost", "the conversations of %s can't be listed: %d %s", t.name, a.status, a.code)
			return
		}
		for _, got := range page.Data {
			c := known[got.ID]
			switch {
			case listed[got.ID]:
				r.report.violate("doubled", "conversation %s is listed twice", got.ID)
			case c == nil && r.isChat(t, got.Title):
			case c == nil:
				r.report.violate("invented", "conversation %s is listed, and nobody made it", got.ID)
			case c.tenant != t:
				r.report.violate("tenant", "conversation %s of %s is listed for %s", got.ID, c.tenant.name, t.name)
			case got.UpdatedAt.After(before):
				r.report.violate("list", "conversation %s, updated at %s, is listed after one of %s", got.ID, stamp(got.UpdatedAt), stamp(before))
			default:
				c.mu.Lock()
				r.report.findings(checkHeader(c, got, "the list"))
				c.mu.Unlock()
			}
			listed[got.ID], before = true, got.UpdatedAt
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	for id, c := range known {
		if c.tenant == t && c.state == acknowledged && c.deleted == refused && !listed[id] {
			r.report.violate("lost", "conversation %s was acknowledged, and is not listed", id)
		}
	}
}
