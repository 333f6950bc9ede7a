package tree

import "time"

// AppendJSON appends the record's members under the column names of the table
// compactions. An absent id is null, absent settings are {}, and absent attempts
// are [].
func (k Compaction) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, k.ID)
	dst = appendID(dst, `,"conversation_id":`, k.ConversationID)
	dst = appendID(dst, `,"head_id":`, k.HeadID)
	dst = appendID(dst, `,"anchor_id":`, k.AnchorID)
	dst = appendID(dst, `,"cutoff_id":`, k.CutoffID)
	dst = appendID(dst, `,"summary_id":`, k.SummaryID)
	dst = appendID(dst, `,"prior_summary_id":`, k.PriorSummaryID)
	dst = appendID(dst, `,"remade_id":`, k.RemadeID)
	dst = appendString(dst, `,"trigger":`, k.Trigger)
	dst = appendString(dst, `,"outcome":`, string(k.Outcome))
	dst = appendString(dst, `,"reason":`, k.Reason)
	dst = appendString(dst, `,"model":`, k.Model)
	dst = appendString(dst, `,"instructions":`, k.Instructions)
	dst = appendObject(dst, `,"settings":`, k.Settings)
	dst = append(dst, `,"attempts":`...)
	if len(k.Attempts) == 0 {
		dst = append(dst, "[]"...)
	}
	dst = append(dst, k.Attempts...)
	dst = appendInt(dst, `,"messages_before":`, k.MessagesBefore)
	dst = appendInt(dst, `,"messages_after":`, k.MessagesAfter)
	dst = appendInt(dst, `,"tokens_before":`, k.TokensBefore)
	dst = appendInt(dst, `,"tokens_after":`, k.TokensAfter)
	dst = appendInt(dst, `,"folded_messages":`, k.FoldedMessages)
	dst = appendInt(dst, `,"folded_tokens":`, k.FoldedTokens)
	dst = appendInt(dst, `,"prompt_tokens":`, k.PromptTokens)
	dst = appendInt(dst, `,"completion_tokens":`, k.CompletionTokens)
	dst = appendInt(dst, `,"duration_ms":`, int(k.Duration/time.Millisecond))
	dst = appendTime(dst, `,"created_at":`, k.CreatedAt)
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (k Compaction) MarshalJSON() ([]byte, error) { return k.AppendJSON(nil), nil }
