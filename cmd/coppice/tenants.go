package main

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

type tenantsCommand struct {
	List   tenantsListCommand   `cmd:"" help:"List the tenants, and what each has stored."`
	Show   tenantsShowCommand   `cmd:"" help:"Show what one tenant has stored, with the size of its messages, which reads all of them."`
	Delete tenantsDeleteCommand `cmd:"" help:"Delete a tenant: its keys, conversations and attachments, for good."`
}

type tenantsListCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
}

func (cmd *tenantsListCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		all, err := d.Store(tree.DefaultTenant).Tenants(ctx)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printList(out, "", all, "")
		}
		rows := make([][]string, len(all))
		for i, t := range all {
			last := "never"
			if t.UpdatedAt != nil {
				last = clock(*t.UpdatedAt)
			}
			rows[i] = []string{terminal.Printable(t.ID), terminal.Thousands(t.Conversations), terminal.Thousands(t.Messages),
				terminal.Thousands(t.Attachments), terminal.Thousands(int(t.AttachmentBytes)), terminal.Thousands(t.Keys), last}
		}
		out.Table([]terminal.Column{
			{Name: "TENANT", Width: 12}, {Name: "CONVERSATIONS", Right: true}, {Name: "MESSAGES", Right: true}, {Name: "ATTACHMENTS", Right: true}, {Name: "BYTES", Right: true}, {Name: "KEYS", Right: true}, {Name: "LAST SAID", Width: len(shortTime)},
		}, rows)
		return nil
	})
}

type tenantsShowCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Tenant string `arg:"" help:"The tenant's id."`
}

func (cmd *tenantsShowCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		t, err := store.Tenant(ctx)
		if err != nil {
			return err
		}
		bytes, tokens, err := store.MessageSize(ctx)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, struct {
				tree.Tenant
				MessageBytes  int64 `json:"message_bytes"`
				MessageTokens int64 `json:"message_tokens"`
			}{t, bytes, tokens})
		}
		out.Line("%s: %s, %s of %s bytes and %s tokens, %s of %s bytes, %s.", terminal.Printable(t.ID),
			terminal.Count(t.Conversations, "conversation"), terminal.Count(t.Messages, "message"), terminal.Thousands(int(bytes)), terminal.Thousands(int(tokens)),
			terminal.Count(t.Attachments, "attachment"), terminal.Thousands(int(t.AttachmentBytes)), terminal.Count(t.Keys, "good key"))
		return nil
	})
}

type tenantsDeleteCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Tenant string `arg:"" help:"The tenant's id."`
	Yes    bool   `short:"y" help:"Don't ask."`
}

func (cmd *tenantsDeleteCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		t, err := store.Tenant(ctx)
		if err != nil {
			return err
		}
		if !cmd.Yes {
			if err := ask(ctx, out, "Delete tenant "+terminal.Printable(t.ID)+" with "+terminal.Count(t.Conversations, "conversation")+" and "+terminal.Count(t.Messages, "message")+", for good?"); err != nil {
				return err
			}
		}
		revoked, err := store.RevokeKeys(ctx)
		if err != nil {
			return err
		}
		if revoked > 0 { // servers accept them until then
			select {
			case <-time.After(keys.CacheTTL):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		done, began := 0, time.Now()
		went, err := store.DeleteTenant(ctx, func() {
			if done++; time.Since(began) > slowStart {
				out.Remark("%s of %s conversations are deleted.", terminal.Thousands(done), terminal.Thousands(t.Conversations))
				began = time.Now()
			}
		})
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, went)
		}
		out.Line("Deleted %s, %s, %s of %s bytes, and %s.", terminal.Count(went.Conversations, "conversation"), terminal.Count(went.Messages, "message"),
			terminal.Count(went.Attachments, "attachment"), terminal.Thousands(int(went.AttachmentBytes)), terminal.Count(went.Keys, "key"))
		return nil
	})
}
