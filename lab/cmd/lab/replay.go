package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/lab/replay"
	"github.com/coppice-chat/coppice/tree"
)

type replayCommand struct {
	modelFlags
	Conversation string `arg:"" help:"Its id."`
	DatabaseURL  string `name:"database-url" env:"COPPICE_DATABASE_URL" required:"" placeholder:"URL" help:"Postgres of the server."`
	Tenant       string `default:"${tenant}" help:"Tenant of the conversation (${default})."`
	Out          string `required:"" type:"path" placeholder:"DIR" help:"Folder to write to, with a folder for each compaction."`
}

func (cmd *replayCommand) Help() string {
	return `Writes for each compaction of a conversation prompt.json (the messages of the request), output.txt (the summary) and metadata.json. With --summary-model, this model writes the summary once more, into again.txt; offline-digest is the offline digest. Nothing is stored.`
}

func (cmd *replayCommand) Run(ctx context.Context, out *printer) error {
	id, err := uuid.Parse(cmd.Conversation)
	if err != nil {
		return fmt.Errorf("%q is no id of a conversation: %w", cmd.Conversation, err)
	}
	_, summarizer, err := cmd.summarizer()
	if err != nil {
		return err
	}
	pool, err := db.Open(ctx, db.Config{URL: cmd.DatabaseURL, MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	store := tree.New(pool).ForTenant(cmd.Tenant)
	var all []tree.Compaction
	for p := (tree.Paging{Limit: tree.MaxPage}); ; {
		page, err := store.Summaries().Compactions(ctx, id, p)
		if err != nil {
			return err
		}
		all = append(all, page.Data...)
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	slices.Reverse(all) // the oldest is the first
	for i, k := range all {
		r, err := replay.Of(ctx, store, k)
		if err != nil {
			return err
		}
		again := ""
		if cmd.SummaryModel != "" && len(r.Input.Fold) > 0 {
			if again, err = r.Again(ctx, summarizer); err != nil {
				again = fmt.Sprintf("(no summary: %v)", err)
			}
		}
		folder := fmt.Sprintf("%03d-%s", i+1, k.Outcome)
		if err := r.Write(filepath.Join(cmd.Out, folder), again); err != nil {
			return err
		}
		out.Line("%s: %s", folder, k.Reason)
		for _, missing := range r.Missing {
			out.Line("   %s", missing)
		}
	}
	return nil
}
