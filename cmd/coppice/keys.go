package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/keys"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Make a key, and print it. It is shown this once."`
	List   keysListCommand   `cmd:"" help:"List the keys, without the keys themselves."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key, for good."`
}

type keysCreateCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Tenant       string `default:"default" placeholder:"ID" help:"Tenant whose conversations the key opens. Its first key makes a tenant."`
	Role         string `enum:"member,admin,operator," default:"" placeholder:"ROLE" help:"member, admin or operator. Without it, admin, and member if the key has a user or a scope."`
	User         string `placeholder:"ID" help:"The one of the tenant's people whose key it is."`
	ReadOnly     bool   `help:"A key that changes nothing."`
	Conversation string `placeholder:"ID" help:"The only conversation that it opens."`
	Expires      age    `placeholder:"AGE" help:"End it after so long, such as 36h or 90d. Without it, it has no end."`
	Name         string `arg:"" help:"What the key is for."`
}

func (cmd *keysCreateCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if strings.TrimSpace(cmd.Name) == "" {
		return usagef("the name is empty: say what the key is for, so that you know it when you revoke it")
	}
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		all := d.Keys()
		closed, err := all.Any(ctx)
		if err != nil {
			return err
		}
		n := keys.NewKey{TenantID: cmd.Tenant, Name: cmd.Name, Role: access.Role(cmd.Role), UserID: cmd.User, ReadOnly: cmd.ReadOnly}
		if cmd.Conversation != "" {
			if n.ConversationID, err = uuid.Parse(cmd.Conversation); err != nil {
				return usagef("--conversation: %v", err)
			}
		}
		if cmd.Expires > 0 {
			n.ExpiresAt = time.Now().Add(time.Duration(cmd.Expires))
		}
		key, secret, err := all.Mint(ctx, access.Principal{}, n)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, keys.Made{Key: key, Secret: secret})
		}
		// The key alone goes to standard output, for a script to catch.
		out.Remark("Key %s (%s) for tenant %s. Keep it: it is shown this once.", key.ID, terminal.Printable(key.Name), terminal.Printable(key.TenantID))
		if !closed {
			out.Remark("It is the first key: from now on every request needs one. Running servers ask for it within %v.", keys.CacheTTL)
		}
		out.Line("%s", secret)
		return nil
	})
}

type keysListCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	Tenant string `placeholder:"ID" help:"Only this tenant's keys."`
}

func (cmd *keysListCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		list, err := d.Keys().List(ctx, cmd.Tenant)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printList(out, "", list, "")
		}
		if len(list) == 0 {
			out.Remark("There is no key. Make one with coppice keys create NAME.")
			return nil
		}
		columns := []terminal.Column{
			{Name: "ID"}, {Name: "STATE", Width: len("revoked")}, {Name: "CREATED"}, {Name: "LAST USED", Width: len(shortTime)}, {Name: "TENANT", Width: 12}, {Name: "ROLE", Width: len(access.Operator)}, {Name: "USER"}, {Name: "NAME"},
		}
		rows := make([][]string, len(list))
		for i, k := range list {
			state, used := "good", "never"
			switch {
			case !k.RevokedAt.IsZero():
				state = "revoked"
			case !k.ExpiresAt.IsZero() && k.ExpiresAt.Before(time.Now()):
				state = "expired"
			}
			if !k.LastUsedAt.IsZero() {
				used = clock(k.LastUsedAt)
			}
			rows[i] = []string{k.ID.String(), state, clock(k.CreatedAt), used, terminal.Printable(k.TenantID), string(k.Role), terminal.Printable(k.UserID), terminal.Printable(k.Name)}
		}
		out.Table(columns, rows)
		return nil
	})
}

type keysRevokeCommand struct {
	databaseFlags `group:"Database"`
	outputFlags
	ID string `arg:"" name:"id" help:"The key's id, as coppice keys list shows it, or the start of it."`
}

func (cmd *keysRevokeCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		all := d.Keys()
		id, err := findKey(ctx, all, cmd.ID)
		if err != nil {
			return err
		}
		key, err := all.Revoke(ctx, id)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, key)
		}
		out.Line("Revoked %s (%s) of tenant %s. Running servers heed it within %v.", key.ID, key.Name, key.TenantID, keys.CacheTTL)
		return nil
	})
}

func findKey(ctx context.Context, all *keys.Keys, name string) (uuid.UUID, error) {
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	list, err := all.List(ctx, "")
	if err != nil {
		return uuid.Nil, err
	}
	var found []uuid.UUID
	for _, k := range list {
		if startsID(k.ID, name) {
			found = append(found, k.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return uuid.Nil, keys.ErrNotFound
	}
	return uuid.Nil, errors.New("several keys have an id that starts so: give more of it")
}
