package tree

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/fault"
)

var (
	errConversationNotFound = fault.New(fault.NotFound, "conversation_not_found", "",
		"There is no conversation with this id. List the conversations to see which there are.")
	errNotOwner = fault.New(fault.Forbidden, "not_permitted", "",
		"The conversation is another user's. Only the owner, or an admin, deletes it or says who reads it.")
	errNoOtherOwner = fault.New(fault.Forbidden, "not_permitted", "owner_id",
		"Only a key without a user gives a conversation to another owner. Leave owner_id out.")
	errMessageNotFound = fault.New(fault.NotFound, "message_not_found", "",
		"The conversation has no message with this id. Read its tree to see which there are.")
	errSummaryNotFound = fault.New(fault.NotFound, "summary_not_found", "",
		"The conversation has no summary with this id. Read its tree to see which there are.")
)

// ErrConversationNotFound says that a conversation isn't there, or not for who asks.
var ErrConversationNotFound error = errConversationNotFound

// isNoRows tells that a query of one row had none.
func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// orMissing names what is missing where a query of one row had none.
func orMissing(err error, missing *fault.Error) error {
	if isNoRows(err) {
		return missing
	}
	return err
}

func conflict(field, format string, args ...any) error {
	return fault.New(fault.Conflict, "id_conflict", field, format, args...)
}
