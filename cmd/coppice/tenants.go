package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/tree"
)

type tenantsCommand struct {
	List   tenantsListCommand   `cmd:"" help:"List the tenants, and what each has stored."`
	Show   tenantsShowCommand   `cmd:"" help:"Show what one tenant has stored, with the size of its messages, which reads all of them."`
	Limits tenantsLimitsCommand `cmd:"" help:"Show what a tenant used today, and limit what it may use in a day."`
	Delete tenantsDeleteCommand `cmd:"" help:"Delete a tenant: its keys, conversations and attachments, for good."`
}

func tenantPath(id string) string { return "/v1/tenants/" + url.PathEscape(id) }

type tenantsListCommand struct {
	operatorFlags
	outputFlags
}

func (cmd *tenantsListCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		if cmd.JSON {
			var all page[json.RawMessage]
			if err := c.get(ctx, "/v1/tenants", nil, &all); err != nil {
				return err
			}
			return printList(out, "", all.Data, "")
		}
		var all page[tree.Tenant]
		if err := c.get(ctx, "/v1/tenants", nil, &all); err != nil {
			return err
		}
		rows := make([][]string, len(all.Data))
		for i, t := range all.Data {
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
	operatorFlags
	outputFlags
	Tenant string `arg:"" help:"The tenant's id."`
}

func (cmd *tenantsShowCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		var t tree.Tenant
		if err := c.get(ctx, tenantPath(cmd.Tenant), url.Values{"size": {"true"}}, &t); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, t)
		}
		out.Line("%s: %s, %s of %s bytes and %s tokens, %s of %s bytes, %s.", terminal.Printable(t.ID),
			terminal.Count(t.Conversations, "conversation"), terminal.Count(t.Messages, "message"), terminal.Thousands(int(*t.MessageBytes)), terminal.Thousands(int(*t.MessageTokens)),
			terminal.Count(t.Attachments, "attachment"), terminal.Thousands(int(t.AttachmentBytes)), terminal.Count(t.Keys, "good key"))
		return nil
	})
}

type tenantsLimitsCommand struct {
	operatorFlags
	outputFlags
	Tenant   string   `arg:"" help:"The tenant's id."`
	Requests *int64   `placeholder:"N" help:"Requests that it may send in a day of UTC; 0 is any number. What isn't given stays."`
	Messages *int64   `placeholder:"N" help:"Messages that it may store."`
	Bytes    *int64   `placeholder:"N" help:"Bytes of messages and files that it may store."`
	Cost     *float64 `placeholder:"N" help:"What the calls of models may cost, at --model-price."`
}

func (cmd *tenantsLimitsCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		limits := struct {
			Requests *int64   `json:"requests,omitempty"`
			Messages *int64   `json:"messages,omitempty"`
			Bytes    *int64   `json:"bytes,omitempty"`
			Cost     *float64 `json:"cost,omitempty"`
		}{cmd.Requests, cmd.Messages, cmd.Bytes, cmd.Cost}
		body, err := json.Marshal(limits)
		if err != nil {
			return err
		}
		method := http.MethodPatch
		if string(body) == "{}" {
			method, body = http.MethodGet, nil
		}
		var day quota.Day
		if err := c.call(ctx, method, tenantPath(cmd.Tenant)+"/limits", nil, body, &day); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, day)
		}
		line := func(what string, used, most float64) []string {
			limit := "any"
			if most > 0 {
				limit = fmt.Sprintf("%.10g", most)
			}
			return []string{what, fmt.Sprintf("%.10g", used), limit}
		}
		used, most := day.Used, day.Limits
		out.Table([]terminal.Column{{Name: "A DAY"}, {Name: "USED", Right: true}, {Name: "LIMIT", Right: true}}, [][]string{
			line("requests", float64(used.Requests), float64(most.Requests)), line("messages", float64(used.Messages), float64(most.Messages)),
			line("bytes", float64(used.Bytes), float64(most.Bytes)), line("cost", used.Cost, most.Cost),
		})
		return nil
	})
}

type tenantsDeleteCommand struct {
	operatorFlags
	outputFlags
	Tenant string `arg:"" help:"The tenant's id."`
	Yes    bool   `short:"y" help:"Don't ask."`
}

func (cmd *tenantsDeleteCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		var t tree.Tenant
		if err := c.get(ctx, tenantPath(cmd.Tenant), nil, &t); err != nil {
			return err
		}
		if !cmd.Yes {
			if err := ask(ctx, out, "Delete tenant "+terminal.Printable(t.ID)+" with "+terminal.Count(t.Conversations, "conversation")+" and "+terminal.Count(t.Messages, "message")+", for good?"); err != nil {
				return err
			}
		}
		if err := c.call(ctx, http.MethodDelete, tenantPath(cmd.Tenant), nil, nil, &t); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, t)
		}
		out.Line("Deleted %s, %s, %s of %s bytes, and %s.", terminal.Count(t.Conversations, "conversation"), terminal.Count(t.Messages, "message"),
			terminal.Count(t.Attachments, "attachment"), terminal.Thousands(int(t.AttachmentBytes)), terminal.Count(t.Keys, "key"))
		return nil
	})
}
