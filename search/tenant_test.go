package search

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

func TestLookedUp(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"Where are the paintings of violins?": "paintings violins",
		"What is it?":                         "",
		"東京都":                                 "東京 京都",
		"user_id 42 userID":                   "userid user id 42",
		strings.Repeat("a1b2c3d4 ", 100):      "a1b2c3d4",
		"one1 two22 three333 four4444 five55555 six666666 seven7 eight88 nine999 ten1010 eleven11 twelve1212 thirteen13 fourteen14 fifteen15 sixteen16 xx1": "twelve1212 thirteen13 fourteen14 six666666 fifteen15 sixteen16 five55555 four4444 eleven11 three333 eight88 nine999 ten1010 seven7 two22 one1",
	} {
		var got []string
		for _, t := range lookedUp(question) {
			got = append(got, t.text)
		}
		slices.Sort(got)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%.60q: %q, want %q", question, got, wanted)
		}
	}
}

// A question to a tenant ranks its conversations as if they were one forest: by
// the words' weights over all of them. Nothing of another tenant is in the answer.
func TestTenantLikeModel(t *testing.T) {
	t.Parallel()
	pool := Database()
	s := New(0)
	vocabulary := strings.Fields("violin violins tree trees painted paint painting garden gardens learned number42 the is a what did you and to of")
	ctx, round := context.Background(), 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		var stores []*tree.Store
		var forests [][]modelNode
		for _, tenant := range []string{"a", "b"} {
			store := tree.New(pool).ForTenant(tenant + uuid.NewString())
			var forest []modelNode
			for range rapid.IntRange(1, 4).Draw(t, "conversations") {
				c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
				check.NoError(t, err)
				ids := []uuid.UUID{uuid.Nil}
				for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
					text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 25).Draw(t, "words"), " ")
					if i == 0 {
						text += " violin" // so that it is a candidate
					}
					body, _ := json.Marshal(map[string]string{"role": rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"), "content": text})
					parent := rapid.SampledFrom(ids[min(i, 1):]).Draw(t, "parent")
					m := check.Must(store.Append(ctx, c.ID, parent, tree.NewMessage{Message: chat.Read(body)}))(t)
					ids = append(ids, m.ID)
					forest = append(forest, modelNode{id: m.ID, parent: parent, body: body})
				}
			}
			stores, forests = append(stores, store), append(forests, forest)
		}
		for i, store := range stores {
			q := Question{
				Query: "violin " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 6).Draw(t, "question"), " "),
				Limit: rapid.IntRange(1, 20).Draw(t, "limit"), MaxTokens: MaxMaxTokens,
			}
			a := check.Must(s.RecallTenant(ctx, store, q))(t)
			naive := scores(forests[i], q.Query)
			var order []float64
			for _, score := range naive {
				if score > 0 {
					order = append(order, score)
				}
			}
			slices.SortFunc(order, func(a, b float64) int { return cmp.Compare(b, a) })
			if a.Searched != len(forests[i]) || len(a.Hits) != min(q.Limit, len(order)) || a.Omitted > 0 {
				t.Fatalf("%d hits of %d messages, want %d of %d", len(a.Hits), a.Searched, min(q.Limit, len(order)), len(forests[i]))
			}
			for place, hit := range a.Hits {
				for _, want := range []float64{naive[hit.Message.ID], order[place]} {
					if math.Abs(hit.Score-want) > 1e-4*max(1, want) {
						t.Fatalf("%q: hit %d scores %g, want %g", q.Query, place, hit.Score, want)
					}
				}
				for _, m := range slices.Concat(hit.Before, hit.After, []tree.Message{hit.Message}) {
					if !slices.ContainsFunc(forests[i], func(n modelNode) bool { return n.id == m.ID }) {
						t.Fatalf("%s is another tenant's", m.ID)
					}
				}
			}
		}
	})
}

// However many conversations have the words, some are asked, and their messages
// have a bound together.
func TestTenantIsBounded(t *testing.T) {
	t.Parallel()
	store := NewStore()
	for range 2 * maxAsked {
		c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
		check.NoError(t, err)
		check.Must(store.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"The violin is sold."}`))}))(t)
	}
	s := New(0)
	a, err := s.RecallTenant(t.Context(), store, Question{Query: "Where is the violin?", Limit: MaxLimit})
	if err != nil || a.Searched != maxAsked || len(a.Hits) != maxAsked || s.Stats().Conversations != maxAsked {
		t.Errorf("%d hits of %d, %+v, %v", len(a.Hits), a.Searched, s.Stats(), err)
	}
	check.Must(Database().Exec(t.Context(), "update conversations set message_count = $1 where tenant_id = $2", maxAskedMessages, store.TenantID()))(t)
	if a, err = New(0).RecallTenant(t.Context(), store, Question{Query: "Where is the violin?", Limit: MaxLimit}); err != nil || a.Searched != 1 {
		t.Errorf("conversations of %d messages each: %d searched, %v", maxAskedMessages, a.Searched, err)
	}
}
