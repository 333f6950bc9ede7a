package reply

import (
	"context"
	"sync"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize"
)

// maxBackground is how much is done after replies at a time.
const maxBackground = 4

// background is what is done after replies, which don't wait for it: branches are
// compacted whose model asked for it, and titles looked for where no Worker queues them.
type background struct {
	ctx       context.Context // ends it
	cancel    context.CancelFunc
	semaphore chan struct{}
	running   sync.WaitGroup
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel, semaphore: make(chan struct{}, maxBackground)}
}

// run does one piece of work when its turn comes, or nothing once ctx ends.
func (w *background) run(do func(ctx context.Context)) {
	w.running.Go(func() {
		select {
		case w.semaphore <- struct{}{}:
			defer func() { <-w.semaphore }()
			do(w.ctx)
		case <-w.ctx.Done():
		}
	})
}

// firstTitle is the title that a conversation gets with its first message.
func (s *Service) firstTitle(req Request) string {
	if req.Title != "" || s.contexts.Titles() == summarize.TitlesOff {
		return req.Title
	}
	said := make([]*chat.Message, len(req.Messages))
	for i, m := range req.Messages {
		said[i] = m.Message
	}
	return summarize.TitleOf(said...)
}

// title gives a conversation the title of its first message. No reply fails for it.
func (s *Service) title(ctx context.Context, r *Reply, req Request) {
	title := s.firstTitle(req)
	if title == "" {
		return
	}
	if _, err := s.store.Retitle(ctx, r.conversation, "", title); ignoreNotFound(err) != nil {
		s.log.WarnContext(ctx, "a title was not stored", "conversation_id", r.conversation, "error", err)
	}
}

// end waits for the work, and ends it when ctx is done. It is called when no reply runs.
func (w *background) end(ctx context.Context) {
	defer context.AfterFunc(ctx, w.cancel)()
	w.running.Wait()
}
