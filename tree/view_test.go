package tree_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A view is the same over a connection of the simple protocol, as poolers
// between the program and Postgres want it, where all values come as text, and
// in memory that other views were in.
func TestViewIsTheSame(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	config := pool.Config().Copy()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	simple, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simple.Close)

	s := tree.New(pool)
	c := newConversation(t, s)
	var line []tree.Message
	parent := uuid.Nil
	for i, body := range []string{
		`{"role":"system","content":"Be brief."}`,
		`{"role":"developer","content":"Ünïcode \u0041"}`,
		`{"role":"user","content":"one"}`,
		`{"role":"assistant","tool_calls":[{"id":"call-1","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"call-1","content":"found"}`,
		`{"role":"assistant","content":"two"}`,
		`{"role":"user","content":"three"}`,
		`{"role":"assistant","content":"` + strings.Repeat("four ", 3000) + `"}`,
	} {
		m := tree.NewMessage{Body: []byte(body), Pinned: i == 2, CreatedAt: time.Date(1969+10*i, 12, 31, 23, 59, 59, 123456000, time.UTC)}
		line = append(line, mustAppend(t, s, c.ID, parent, m))
		parent = line[i].ID
	}
	prior := uuid.Nil
	for _, anchor := range []int{5, 6} {
		summary, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{
			AnchorID: line[anchor].ID, Body: []byte(fmt.Sprintf(`{"role":"user","content":"summary %d"}`, anchor)), Metadata: []byte(`{"by": "us"}`),
			Range: tree.SummaryRange{LastSummarizedID: line[anchor-1].ID, PriorSummaryID: prior, KeptIDs: []uuid.UUID{line[2].ID, line[3].ID}, Model: "m"},
		})
		if err != nil {
			t.Fatal(err)
		}
		prior = summary.ID
	}
	for _, head := range line {
		for _, budget := range []int64{1, 1 << 40} {
			for _, options := range [][]tree.ViewOption{nil, {tree.Skeleton()}} {
				want, err := tree.New(pool).View(t.Context(), c.ID, head.ID, budget, options...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := tree.New(simple).View(t.Context(), c.ID, head.ID, budget, options...)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("depth %d, budget %d, %d options: %v\n%+v\nover the extended protocol\n%+v", head.Depth, budget, len(options), err, got, want)
				}
				for _, m := range want.Tail {
					if whole := line[m.Depth]; m.ID != whole.ID || m.ParentID != whole.ParentID || m.Role != whole.Role || m.Tokens != whole.Tokens ||
						m.PathTokens != whole.PathTokens || m.Pinned != whole.Pinned || !m.CreatedAt.Equal(whole.CreatedAt) {
						t.Errorf("%+v of the view is\n%+v", m.Message, whole)
					}
				}
			}
		}
	}
	if v, _ := s.View(t.Context(), c.ID, line[7].ID, 1<<40); v.Summary == nil || v.Summary.ID != prior || len(v.Summary.Range.KeptIDs) != 2 || v.Summary.Range.PriorSummaryID == uuid.Nil {
		t.Errorf("summary %+v", v.Summary)
	}
}
