package transfer

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	id := func(change func(*format.Conversation), in, tenant string) string {
		c := format.Conversation{SourceID: "c", Title: "T"}
		change(&c)
		return publicID(&c, in, tenant).String()
	}
	with := func(sourceID string) func(*format.Conversation) {
		return func(c *format.Conversation) { c.SourceID = sourceID }
	}
	const u = "f2bd1e6e-4a39-4f2c-9d1e-0f0c6f3d2a11"
	if id(with(u), "x", "") != id(with(u), "y", tree.DefaultTenant) {
		t.Error("a UUID names the same conversation in every format")
	}
	if id(with(strings.ToUpper(u)), "x", "") != id(with(u), "x", "") {
		t.Error("a UUID is the same in capitals")
	}
	if id(with("1"), "x", "") == id(with("1"), "y", "") {
		t.Error("an id that is no UUID names different conversations in different formats")
	}
	if id(with(u), "x", "") == id(with(u), "x", "other") {
		t.Error("two tenants have the same id")
	}
	own := func(c *format.Conversation) { c.SourceID, c.OwnIDs = u, true }
	if id(own, "x", "other") != u {
		t.Error("Coppice's own id did not stay")
	}
}
