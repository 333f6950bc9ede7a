package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

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

// A question to a tenant ranks its conversations by the words' weights over all of them:
// one has "violin" once and "tulip" everywhere, and all others have "violin".
func TestTenantsWordsHaveCommonWeights(t *testing.T) {
	t.Parallel()
	store := NewStore()
	for i := range 5 {
		c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
		check.NoError(t, err)
		for j := range 6 {
			word := []string{"tulip", "violin"}[min(i+j/5, 1)]
			check.Must(store.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":"user","content":"The %s is sold."}`, word))}))(t)
		}
	}
	a, err := New(0).RecallTenant(t.Context(), store, Question{Query: "violin tulip", Limit: 6})
	if err != nil || len(a.Hits) != 6 || a.Searched != 30 || strings.Contains(string(a.Hits[0].Message.Body), "violin") || strings.Contains(string(a.Hits[4].Message.Body), "violin") {
		t.Errorf("%+v, %v", a, err)
	}
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
