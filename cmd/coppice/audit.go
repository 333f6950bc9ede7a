package main

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type auditCommand struct {
	dataFlags
	outputFlags
	pageFlags
}

func (cmd *auditCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		return writePages(ctx, out, c, cmd.outputFlags, cmd.pageFlags, "/v1/audit-events", nil, "Nothing was deleted, exported or shared.", func(page page[tree.AuditEvent]) {
			rows := make([][]string, len(page.Data))
			for i, e := range page.Data {
				by := cmp.Or(e.UserID, orNone(e.KeyID), e.Address, "coppice")
				rows[i] = []string{clock(e.At), e.Action, terminal.Printable(by), e.Address, orNone(e.ConversationID), terminal.Printable(cmp.Or(e.Detail, orNone(e.SubjectID)))}
			}
			out.Table([]terminal.Column{
				{Name: "WHEN"}, {Name: "ACTION"}, {Name: "BY"}, {Name: "ADDRESS", Width: len("127.0.0.1")}, {Name: "CONVERSATION", Width: len(uuid.Nil.String())}, {Name: "WHAT", Cut: true},
			}, rows)
		})
	})
}

// orNone is an id in words, "" for none.
func orNone(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
