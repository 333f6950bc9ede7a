package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/keys"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Make a key, and print it. It is shown this once."`
	List   keysListCommand   `cmd:"" help:"List the keys, without the keys themselves."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key, for good."`
}

// apiKey is a key as the server shows it.
type apiKey struct {
	ID         uuid.UUID   `json:"id"`
	TenantID   string      `json:"tenant_id"`
	Name       string      `json:"name"`
	Role       access.Role `json:"role"`
	UserID     string      `json:"user_id"`
	Key        string      `json:"key"`
	CreatedAt  time.Time   `json:"created_at"`
	LastUsedAt *time.Time  `json:"last_used_at"`
	ExpiresAt  *time.Time  `json:"expires_at"`
	RevokedAt  *time.Time  `json:"revoked_at"`
}

// listKeys reads the keys of a tenant. "" is the tenant of --key, and all tenants where the
// command needs none.
func listKeys[T any](ctx context.Context, c *client, tenant string) ([]T, error) {
	query := url.Values{}
	if tenant == "" && !c.named {
		tenant = access.Everybody
	}
	if tenant != "" {
		query.Set("tenant_id", tenant)
	}
	all, err := readPages[T](ctx, c, pageFlags{}, "/v1/keys", query)
	return all.Data, err
}

type keysCreateCommand struct {
	operatorFlags
	outputFlags
	Tenant       string `placeholder:"ID" help:"Tenant whose conversations the key opens: default, or that of --key. Its first key makes a tenant."`
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
	return cmd.withServer(ctx, out, logs, alone{begins: true}, func(c *client) error {
		first := false
		if !c.named { // a server elsewhere has the key of --key
			there, err := listKeys[json.RawMessage](ctx, c, "")
			if err != nil {
				return err
			}
			first = len(there) == 0
		}
		body := map[string]any{"name": cmd.Name, "read_only": cmd.ReadOnly}
		for name, value := range map[string]string{"tenant_id": cmd.Tenant, "role": cmd.Role, "user_id": cmd.User, "conversation_id": cmd.Conversation} {
			if value != "" {
				body[name] = value
			}
		}
		if cmd.Expires > 0 {
			body["expires_at"] = time.Now().Add(time.Duration(cmd.Expires)).UTC()
		}
		var made json.RawMessage
		if err := c.send(ctx, http.MethodPost, "/v1/keys", body, &made); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, made)
		}
		var key apiKey
		if err := json.Unmarshal(made, &key); err != nil {
			return err
		}
		// The key alone goes to standard output, for a script to catch.
		out.Remark("Key %s (%s) for tenant %s. Keep it: it is shown this once.", key.ID, terminal.Printable(key.Name), terminal.Printable(key.TenantID))
		if first {
			out.Remark("It is the first key: from now on every request needs one. Running servers ask for it within %v.", keys.CacheTTL)
		}
		out.Line("%s", key.Key)
		return nil
	})
}

type keysListCommand struct {
	operatorFlags
	outputFlags
	Tenant string `placeholder:"ID" help:"Only this tenant's keys."`
}

func (cmd *keysListCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		if cmd.JSON {
			list, err := listKeys[json.RawMessage](ctx, c, cmd.Tenant)
			if err != nil {
				return err
			}
			return printList(out, "", list, "")
		}
		list, err := listKeys[apiKey](ctx, c, cmd.Tenant)
		if err != nil {
			return err
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
			case k.RevokedAt != nil:
				state = "revoked"
			case k.ExpiresAt != nil && k.ExpiresAt.Before(time.Now()):
				state = "expired"
			}
			if k.LastUsedAt != nil {
				used = clock(*k.LastUsedAt)
			}
			rows[i] = []string{k.ID.String(), state, clock(k.CreatedAt), used, terminal.Printable(k.TenantID), string(k.Role), terminal.Printable(k.UserID), terminal.Printable(k.Name)}
		}
		out.Table(columns, rows)
		return nil
	})
}

type keysRevokeCommand struct {
	operatorFlags
	outputFlags
	ID string `arg:"" name:"id" help:"The key's id, as coppice keys list shows it, or the start of it."`
}

func (cmd *keysRevokeCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		key, err := findKey(ctx, c, cmd.ID)
		if err != nil {
			return err
		}
		if err := c.call(ctx, http.MethodDelete, "/v1/keys/"+key.ID.String(), nil, nil, nil); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, struct {
				ID uuid.UUID `json:"id"`
			}{key.ID})
		}
		out.Line("Revoked %s (%s) of tenant %s. Running servers heed it within %v.", key.ID, key.Name, key.TenantID, keys.CacheTTL)
		return nil
	})
}

func findKey(ctx context.Context, c *client, name string) (found apiKey, err error) {
	list, err := listKeys[apiKey](ctx, c, "")
	if err != nil {
		return found, err
	}
	n := 0
	for _, k := range list {
		if startsID(k.ID, name) {
			found, n = k, n+1
		}
	}
	switch n {
	case 1:
		return found, nil
	case 0:
		return found, keys.ErrNotFound
	}
	return found, errors.New("several keys have an id that starts so: give more of it")
}
