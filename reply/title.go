package reply

import (
	"context"
	"sync"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// maxTitling is how many titles are looked for at a time.
const maxTitling = 4

// titling looks for titles in the background: no reply waits for one.
type titling struct {
	ctx       context.Context // ends the search
	cancel    context.CancelFunc
	semaphore chan struct{}
	running   sync.WaitGroup
}

func newTitling() *titling {
	ctx, cancel := context.WithCancel(context.Background())
	return &titling{ctx: ctx, cancel: cancel, semaphore: make(chan struct{}, maxTitling)}
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

// lookForTitle gives the conversation of a first answer a title.
func (s *Service) lookForTitle(answer tree.Message) {
	if s.contexts.Titles() == summarize.TitlesOff || !summarize.FirstAnswer(answer) {
		return
	}
	t := s.titling
	t.running.Go(func() {
		t.semaphore <- struct{}{} // which is free soon, as no search outlasts ctx
		defer func() { <-t.semaphore }()
		err := s.contexts.Title(t.ctx, answer.ConversationID, answer.ID)
		if ignoreNotFound(err) != nil && t.ctx.Err() == nil {
			s.log.WarnContext(t.ctx, "a title was not stored", "conversation_id", answer.ConversationID, "error", err)
		}
	})
}

// end waits for the titles that are looked for, and ends the search when ctx is
// done. It is called when no reply runs.
func (t *titling) end(ctx context.Context) {
	defer context.AfterFunc(ctx, t.cancel)()
	t.running.Wait()
}
