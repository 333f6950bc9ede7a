package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

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
	Tenant string `default:"default" placeholder:"ID" help:"Tenant whose conversations the key opens. Its first key makes a tenant."`
	Name   string `arg:"" help:"What the key is for."`
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
		key, secret, err := all.Create(ctx, cmd.Tenant, cmd.Name)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, keyJSON(key, secret))
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
			l := jsonList{w: out}
			for _, k := range list {
				if err := l.add(keyJSON(k, "")); err != nil {
					return err
				}
			}
			return l.end("")
		}
		if len(list) == 0 {
			out.Remark("There is no key. Make one with coppice keys create NAME.")
			return nil
		}
		columns := []terminal.Column{
			{Name: "ID"}, {Name: "STATE", Width: len("revoked")}, {Name: "CREATED"}, {Name: "LAST USED", Width: len(shortTime)}, {Name: "TENANT", Width: 12}, {Name: "NAME"},
		}
		rows := make([][]string, len(list))
		for i, k := range list {
			state, used := "good", "never"
			if !k.RevokedAt.IsZero() {
				state = "revoked"
			}
			if !k.LastUsedAt.IsZero() {
				used = clock(k.LastUsedAt)
			}
			rows[i] = []string{k.ID.String(), state, clock(k.CreatedAt), used, terminal.Printable(k.TenantID), terminal.Printable(k.Name)}
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
			return printJSON(out, keyJSON(key, ""))
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

// keyJSON is a key for programs.
func keyJSON(k keys.Key, secret string) any {
	orNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return struct {
		ID         uuid.UUID  `json:"id"`
		TenantID   string     `json:"tenant_id"`
		Name       string     `json:"name"`
		Key        string     `json:"key,omitempty"` // the key itself, when it is made
		CreatedAt  time.Time  `json:"created_at"`
		LastUsedAt *time.Time `json:"last_used_at"`
		RevokedAt  *time.Time `json:"revoked_at"`
	}{k.ID, k.TenantID, k.Name, secret, k.CreatedAt, orNull(k.LastUsedAt), orNull(k.RevokedAt)}
}

// minPrefix is how many characters of an id one has to give.
const minPrefix = 4

// startsID tells whether text is the start of an id, which may be written
// without dashes.
func startsID(id uuid.UUID, text string) bool {
	if len(text) < minPrefix {
		return false
	}
	text = strings.ToLower(text)
	whole := id.String()
	return strings.HasPrefix(whole, text) || strings.HasPrefix(strings.ReplaceAll(whole, "-", ""), text)
}
