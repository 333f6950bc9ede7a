package search

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

func fill(c *conversation, messages int) {
	parent := uuid.Nil
	for i := range messages {
		text := textOf(fmt.Sprintf("user: word%d word%d and more of it", i, i/2), i, parent)
		if _, err := c.add(text, &allowance{bytes: mostRead}); err != nil {
			panic(err)
		}
		parent = text.ID
	}
}

// The conversation that wasn't asked about for longest goes first, and all that
// stay are below the bound.
func TestCacheDropsOldest(t *testing.T) {
	t.Parallel()
	const each = 50
	probe := newConversation(key{})
	fill(probe, each)
	one := probe.bytes()
	c := newCache(3*one + one/2)
	keys := make([]key, 5)
	use := func(i int) *conversation {
		conv := c.get(keys[i])
		if conv.bytes() == conversationBytes {
			fill(conv, each)
		}
		c.used(conv)
		return conv
	}
	for i := range keys {
		keys[i] = key{"t", uuid.UUID{15: byte(i + 1)}}
	}
	for _, i := range []int{0, 1, 2, 0, 3} {
		use(i)
	}
	for i, want := range []bool{true, false, true, true, false} {
		if _, got := c.byKey[keys[i]]; got != want {
			t.Errorf("conversation %d is there: %v, want %v", i, got, want)
		}
	}
	if c.bytes != 3*one || len(c.byKey) != c.recent.Len() {
		t.Errorf("%d bytes are counted for %d conversations of %d", c.bytes, c.recent.Len(), one)
	}
	// One that takes more than all may is dropped after it was used.
	big := c.get(keys[4])
	fill(big, 20*each)
	c.used(big)
	if _, there := c.byKey[keys[4]]; there || c.recent.Len() != 3 || c.bytes != 3*one {
		t.Errorf("%d conversations and %d bytes stay after one that is too large", c.recent.Len(), c.bytes)
	}
	c.used(big) // of another question, done later
	if c.bytes != 3*one {
		t.Errorf("%d bytes are counted of what was dropped", c.bytes)
	}
}

// Text that can't be read as it should be is taken as it is.
func TestAnyBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"user","content":[{"type":"text","text":"violin"},{"type":"image_url","image_url":{"url":"x"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"sell","arguments":"{\"what\":\"violin\"}"}}]}`,
		`{"role":"assistant","refusal":"No violin."}`,
		`{"role":"tool","tool_call_id":"1","content":"violin sold"}`,
	} {
		x := newIndex()
		read(x, tree.MessageText{ID: uuid.UUID{1}, Role: tree.RoleUser, Body: []byte(body)})
		if got := order(x, []int32{0}, "violins"); len(got) != 1 {
			t.Errorf("%s is not found", body)
		}
	}
}
