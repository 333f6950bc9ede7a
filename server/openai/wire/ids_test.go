package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// Ids are read as they were written, and no other text is an id.
func TestIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		anUUID := rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) uuid.UUID { return uuid.UUID(b) })
		n := NodeID{anUUID.Draw(t, "conversation"), anUUID.Draw(t, "node")}
		item := ItemID{n, rapid.SampledFrom([]Kind{KindMessage, KindCall, KindCallOutput, KindReasoning, KindCompaction}).Draw(t, "kind"), rapid.IntRange(0, maxOrdinal).Draw(t, "ordinal")}
		check.Equal(t, n.ResponseID(), check.Must(ParseResponseID(n.ResponseID()))(t), n)
		check.Equal(t, n.CompletionID(), check.Must(ParseCompletionID(n.CompletionID()))(t), n)
		check.Equal(t, ConversationID(n.Node), check.Must(ParseConversationID(ConversationID(n.Node)))(t), n.Node)
		check.Equal(t, item.String(), check.Must(ParseItemID(item.String()))(t), item)
	})
}

func TestIDsRefuse(t *testing.T) {
	t.Parallel()
	response, item, conversation := someNode.ResponseID(), someNode.item(KindCall, 2), ConversationID(someNode.Node)
	last := func(id string) string { return id[:len(id)-1] + "B" } // of which base64 would drop bits
	for id, parse := range map[string]func(string) error{
		response:                   func(s string) error { _, err := ParseResponseID(s); return err },
		"chatcmpl-" + response[5:]: func(s string) error { _, err := ParseCompletionID(s); return err },
		conversation:               func(s string) error { _, err := ParseConversationID(s); return err },
		item:                       func(s string) error { _, err := ParseItemID(s); return err },
	} {
		check.NoError(t, parse(id))
		for _, other := range []string{
			"", "resp_", "conv_", "msg_", "fc_", "x" + id, id + "A", id + "=", id[:len(id)-2], strings.ToUpper(id), id[:12] + "\n" + id[12:], id[:12] + "\n" + id[13:],
			strings.Replace(id, "A", "+", 1), "msg_6ad3c1b2-8f2b-7cc1-93a6-21e0b1c3f0aa", "resp_" + conversation[5:], last(response), last(conversation),
			item + "0000000000", item + "-1", item[:len(item)-1] + "02", item[:len(item)-1] + "+2", "zz" + item[2:], strings.Repeat("x", 1000),
		} {
			err := parse(other)
			check.That(t, errors.Is(err, fault.NotFound) && len(err.Error()) <= 200, "%q, which is no %s: %v", other, id, err)
		}
	}
	if err := NoPrevious("resp_x"); err.Kind != fault.Invalid || err.Field != "previous_response_id" || err.Detail != "Previous response with id 'resp_x' not found." {
		t.Errorf("%+v", err)
	}
}

// The content of a compaction item is read again, and anything else is refused.
func TestCompaction(t *testing.T) {
	t.Parallel()
	want := Compaction{someSummary, someNode.Node, "They said <b>é\"."}
	content := want.Content()
	got, err := ReadCompaction(content)
	check.That(t, err == nil && got == want, "%+v became %+v: %v", want, got, err)
	for _, other := range []string{"gAAAAABo", contentPrefix, content[len(contentPrefix):], content[:len(content)-8], content + "="} {
		if _, err := ReadCompaction(other); fault.Of(err).Field != "encrypted_content" || fault.Of(err).Kind != fault.Invalid {
			t.Errorf("%q: %v", other, err)
		}
	}
}
