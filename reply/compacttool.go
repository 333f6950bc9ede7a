package reply

import (
	"context"
	"encoding/json"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// CompactName is the name of the function by which a model asks that its branch be
// compacted, where the conversation's compaction is summarize.ModeTool.
const CompactName = "compact_branch"

// compactTool is the function as a chat-completions request has it. Its bytes never
// change, as those of recallTool.
var compactTool = json.RawMessage(`{"type":"function","function":{"name":"` + CompactName + `",` +
	`"description":"Has the older part of this conversation folded into a summary once your answer is complete, so that less of it is shown to you from then on. ` +
	`Call it when a task is settled and the messages about it are no longer needed word for word.",` +
	`"parameters":{"type":"object","properties":{` +
	`"instructions":{"type":"string","description":"What the summary should take care of; leave it out for nothing in particular."}},` +
	`"additionalProperties":false}}}`)

// asksToCompact notes that the model asked for a compaction, and answers the call. What
// is wrong with the call, the result says.
func (a *assignment) asksToCompact(callID, arguments string) json.RawMessage {
	var asked struct{ Instructions *string }
	if arguments != "" && json.Unmarshal([]byte(arguments), &asked) != nil {
		return toolResult(callID, `Call `+CompactName+` with an object such as {"instructions": "Keep the numbers."}, or {}.`)
	}
	if asked.Instructions != nil && *asked.Instructions == "" {
		asked.Instructions = nil
	}
	demand, err := summarize.NewDemand(nil, asked.Instructions, nil)
	if err != nil {
		return toolResult(callID, err.Error())
	}
	a.demand = demand
	return toolResult(callID, "The conversation will be compacted once your answer is complete. Go on.")
}

// compactAfter compacts the branch of an answer in the background, as its model asked for.
func (s *Service) compactAfter(answer tree.Message, demand *summarize.Demand) {
	s.background.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		_, err := s.contexts.Compact(ctx, answer.ConversationID, answer.ID, summarize.TriggerRequest, demand)
		if ignoreNotFound(err) != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "a branch was not compacted as its model asked", "conversation_id", answer.ConversationID, "head_id", answer.ID, "error", err)
		}
	})
}
