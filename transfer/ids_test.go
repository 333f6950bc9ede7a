package transfer_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// ids are those of a store's conversations, by their titles.
func ids(t *testing.T, s *tree.Store) map[string]uuid.UUID {
	t.Helper()
	list := check.Must(s.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{}))(t)
	found := map[string]uuid.UUID{}
	for _, c := range list.Data {
		found[c.Title] = c.ID
	}
	return found
}

func importText(t *testing.T, s *tree.Store, file string, opts transfer.Options) transfer.Report {
	t.Helper()
	opts.TenantID = s.TenantID()
	return check.Must(transfer.Import(t.Context(), transfer.Into(s), strings.NewReader(file), opts))(t)
}

// The ids of what is imported are an installation's and a tenant's own: nobody
// can compute them and take them in advance. Importing again adds nothing.
func TestImportedIDsCantBeTaken(t *testing.T) {
	t.Parallel()
	pools := []*pgxpool.Pool{dbtest.New(t), dbtest.New(t)}
	check.Must(pools[1].Exec(t.Context(), "update installation set secret = sha256('another')"))(t)
	const u = "f2bd1e6e-4a39-4f2c-9d1e-0f0c6f3d2a11"
	file := claudeExport(u, "b")
	// Somebody who knows the file takes the ids that the names alone give.
	thief := tree.New(pools[0]).ForTenant("thief")
	for _, tenant := range []string{tree.DefaultTenant, "other"} {
		for _, id := range []string{u, "b"} {
			public := transfer.PublicID(&format.Conversation{SourceID: id}, "claude", tenant)
			if _, _, err := thief.CreateConversation(t.Context(), tree.NewConversation{ID: public}); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[uuid.UUID]bool{}
	for _, pool := range pools {
		for _, tenant := range []string{tree.DefaultTenant, "other"} {
			s := tree.New(pool).ForTenant(tenant)
			if first := importText(t, s, file, transfer.Options{}); first.Added != 200 || first.Conversations != 2 {
				t.Errorf("%s: %s, %d added", tenant, formattest.Count(first), first.Added)
			}
			before := ids(t, s)
			if again := importText(t, s, file, transfer.Options{}); again.Added != 0 || again.Present != 200 || len(ids(t, s)) != 2 {
				t.Errorf("%s, again: %d added, %d present", tenant, again.Added, again.Present)
			}
			for title, id := range before {
				check.That(t, !seen[id] && id.Version() == 8, "%s: %s has the id %s", tenant, title, id)
				seen[id] = true
			}
		}
	}
}

// A fork that was restored from a file is still the same fork.
func TestRestoredForkIsRecognized(t *testing.T) {
	t.Parallel()
	from, to := tree.New(dbtest.New(t)), tree.New(dbtest.New(t))
	importText(t, from, claudeExport("a"), transfer.Options{})
	source := ids(t, from)["a"]
	c := check.Must(from.Conversation(t.Context(), source))(t)
	n := tree.NewConversation{ID: uuid.New(), Title: "Fork"}
	if _, _, err := from.Fork(t.Context(), source, c.HeadID, n); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	for _, id := range []uuid.UUID{source, n.ID} {
		check.NoError(t, transfer.Export(t.Context(), from, id, &file))
	}
	restored := file.String()
	if report := importText(t, to, restored, transfer.Options{}); report.Added != 200 || len(report.Notes) > 0 {
		t.Fatalf("%d added, %s", report.Added, formattest.Notes(report))
	}
	if _, created, err := to.Fork(t.Context(), source, c.HeadID, n); created || err != nil {
		t.Errorf("the fork again: created %t, %v", created, err)
	}
	// A source that can't be read is left out, and named.
	broken := strings.Replace(restored, `"source":{"conversation_id":"`, `"source":{"conversation_id":"x`, 1)
	report := importText(t, tree.New(dbtest.New(t)), broken, transfer.Options{})
	if report.Added != 200 || !strings.Contains(formattest.Notes(report), "source") {
		t.Errorf("%d added, %s", report.Added, formattest.Notes(report))
	}
}
