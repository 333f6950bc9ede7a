package recognize_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// TestRetryOfWhatIsStopping holds that a retry which comes while its first attempt is
// being stopped, because its client went, gets an answer of its own, on any server.
func TestRetryOfWhatIsStopping(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]recognize.Attempt{
		"counted": {Retried: true}, "keyed": {Key: "k"},
		"counted elsewhere": {Retried: true, Stops: true}, "keyed elsewhere": {Key: "k", Stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			model := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				<-release // though ctx has ended
				if ctx.Err() != nil {
					return llm.Response{}, ctx.Err()
				}
				return llmtest.Response("ok"), nil
			}}
			pool := dbtest.New(t)
			store := tree.New(pool)
			contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
			var servers [2]recognize.Service
			for i := range servers {
				replies := check.Must(reply.New(reply.Config{Store: store, Contexts: contexts, Models: []llm.Model{model}, SaveEvery: time.Hour}))(t)
				servers[i] = recognize.Service{Store: store, Replies: replies}
			}
			record := func(s recognize.Service, a recognize.Attempt) (*reply.Reply, error) {
				turn := recognize.Turn{History: tree.History{Messages: []*chat.Message{chat.Read([]byte(asked))}}}
				return s.Record(t.Context(), turn, recognize.Recording{Ask: func(recognize.Match) reply.Request { return reply.Request{} }, Attempt: a})
			}
			first := check.Must(record(servers[0], recognize.Attempt{Key: retry.Key}))(t)
			for len(model.Requests()) == 0 {
				time.Sleep(time.Millisecond)
			}
			ctx, leave := context.WithCancel(t.Context())
			first.Attend(ctx, true)
			for leave(); !first.Stopping(true); {
				time.Sleep(time.Millisecond)
			}
			queries := pool.Stat().AcquireCount()
			go func() { // once the retry looks for the first attempt
				for pool.Stat().AcquireCount() < queries+2 {
					time.Sleep(time.Millisecond)
				}
				close(release)
			}()
			again := servers[0]
			if retry.Stops {
				again = servers[1]
			}
			second := check.Must(record(again, retry))(t)
			if end, err := second.Wait(t.Context()); err != nil || end.Status != reply.StatusCompleted {
				t.Errorf("the retry's answer is %s: %v, %v", end.Status, end.Err, err)
			}
		})
	}
}
