package db

import "github.com/jackc/pgx/v5/pgtype"

// A Statement is the text of a query with its arguments, for who measures what
// it costs without the program around it. Programs call [Queries].
type Statement struct {
	SQL  string
	Args []any
}

// AppendStatements are the two of AppendInTurn.
func AppendStatements(arg AppendMessageParams) [2]Statement {
	return [2]Statement{{lockConversation, []any{arg.ConversationID, arg.TenantID}}, {appendMessage, appendArgs(arg)}}
}

// ViewStatement is GetView's.
func ViewStatement(arg GetViewParams) Statement { return Statement{getView, viewArgs(arg)} }

// TranscriptStatement is GetTranscript's.
func TranscriptStatement(arg GetTranscriptParams) Statement {
	return Statement{getTranscript, []any{arg.ConversationID, arg.HeadID, arg.TenantID, arg.RowLimit}}
}

// TreeStatement is StreamTree's, without previews.
func TreeStatement(conversationID pgtype.UUID) Statement {
	return Statement{streamTree, []any{int32(0), conversationID}}
}
