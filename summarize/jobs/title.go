package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/summarize"
)

// titling asks for the title of a conversation whose first answer HeadID may be.
type titling job

func (titling) Kind() string { return "title" }

func (titling) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: titleQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// titleQueue has workers of its own, so that no title waits for a compaction.
const (
	titleQueue   = "titles"
	titleWorkers = 4
)

// title works such a job off. That a model fails is no error: the title stays.
func (w *Worker) title(ctx context.Context, j *river.Job[titling]) error {
	err := w.service.ForTenant(j.Args.TenantID).Title(ctx, j.Args.ConversationID, j.Args.HeadID)
	if err == nil || summarize.TroubleOf(ctx, err) == summarize.TroubleGone {
		return nil
	}
	return w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
}
