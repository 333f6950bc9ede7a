package jobs

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/summarize"
)

// titling asks for the title of a conversation whose first answer HeadID may be.
type titling struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
	HeadID         uuid.UUID `json:"head_id" river:"unique"` // another first answer has a job of its own: this one may be pruned
}

func (titling) Kind() string { return "title" }

func (titling) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: titleQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// titleQueue has workers of its own, so that no title waits for a compaction.
const (
	titleQueue   = "titles"
	titleWorkers = 4
)

// QueuesTitles tells whether the Worker makes jobs of titles: where it works, and a
// model gives them. Elsewhere package reply looks for them after its answers.
func (w *Worker) QueuesTitles() bool {
	return w.works && w.service.AsksModels() && w.service.Titles() == summarize.TitlesModel
}

// title works such a job off. That a model fails is no error: the title stays.
func (w *Worker) title(ctx context.Context, j *river.Job[titling]) error {
	err := w.service.ForTenant(j.Args.TenantID).Title(ctx, j.Args.ConversationID, j.Args.HeadID)
	if err == nil || summarize.TroubleOf(ctx, err) == summarize.TroubleGone {
		return nil
	}
	return w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
}
