package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A problem is an error of the server's own. The status follows from the code.
type problem struct {
	code   Code
	field  string // "" for none
	detail string // for the client: what is wrong and how to mend it
	cause  error  // for the log; nil for none
}

func (p *problem) Error() string {
	if p.cause != nil {
		return fmt.Sprintf("%s: %v", p.code, p.cause)
	}
	return fmt.Sprintf("%s: %s", p.code, p.detail)
}

func (p *problem) Unwrap() error { return p.cause }

func problemf(code Code, field, format string, args ...any) *problem {
	return &problem{code: code, field: field, detail: fmt.Sprintf(format, args...)}
}

// asError is errors.As in the form that a switch's case can use.
func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// statuses are those of the server's own codes. Codes that the tree gives get
// theirs by kind.
var statuses = map[Code]int{
	CodeInvalidUTF8:           http.StatusBadRequest,
	CodeInvalidJSON:           http.StatusBadRequest,
	CodeInvalidCharacter:      http.StatusBadRequest,
	CodeTooDeep:               http.StatusBadRequest,
	CodeWrongType:             http.StatusBadRequest,
	CodeMissingBody:           http.StatusBadRequest,
	CodeIncompleteBody:        http.StatusBadRequest,
	CodeEmptyFile:             http.StatusBadRequest,
	CodeUnknownFormat:         http.StatusBadRequest,
	CodeInvalidFile:           http.StatusBadRequest,
	CodeUnknownField:          http.StatusBadRequest,
	CodeDuplicateField:        http.StatusBadRequest,
	CodeMissingField:          http.StatusBadRequest,
	CodeInvalidID:             http.StatusBadRequest,
	CodeInvalidLimit:          http.StatusBadRequest,
	CodeInvalidCursor:         http.StatusBadRequest,
	CodeInvalidPreview:        http.StatusBadRequest,
	CodeInvalidIdempotencyKey: http.StatusBadRequest,
	CodeInvalidQuery:          http.StatusBadRequest,
	CodeInvalidParameter:      http.StatusBadRequest,
	CodeUnknownParameter:      http.StatusBadRequest,
	CodeDuplicateParameter:    http.StatusBadRequest,
	CodeInvalidSetting:        http.StatusBadRequest,
	CodeInvalidDemand:         http.StatusBadRequest,
	CodeUnknownModel:          http.StatusBadRequest,
	CodeMissingKey:            http.StatusUnauthorized,
	CodeInvalidKey:            http.StatusUnauthorized,
	CodeForbiddenHost:         http.StatusForbidden,
	CodeCrossOrigin:           http.StatusForbidden,
	CodeRouteNotFound:         http.StatusNotFound,
	CodeMethodNotAllowed:      http.StatusMethodNotAllowed,
	CodeBodyTooLarge:          http.StatusRequestEntityTooLarge,
	CodeUnsupportedMediaType:  http.StatusUnsupportedMediaType,
	CodeIDConflict:            http.StatusConflict,
	CodeHeadNotAnswerable:     http.StatusBadRequest,
	CodeOpenToolCalls:         http.StatusBadRequest,
	CodeReplyNotFound:         http.StatusNotFound,
	CodeReplyStopped:          http.StatusConflict,
	CodeTooManyReplies:        http.StatusTooManyRequests,
	CodeRateLimited:           http.StatusTooManyRequests,
	CodeTooManyStreams:        http.StatusTooManyRequests,
	CodeShuttingDown:          http.StatusServiceUnavailable,
	CodeAnswerTooLong:         http.StatusBadGateway,
	CodePromptTooLong:         http.StatusBadGateway,
	CodeModelBadResponse:      http.StatusBadGateway,
	CodeModelNotAuthorized:    http.StatusBadGateway,
	CodeModelRateLimited:      http.StatusServiceUnavailable,
	CodeModelRefused:          http.StatusBadGateway,
	CodeModelTimeout:          http.StatusGatewayTimeout,
	CodeModelUnavailable:      http.StatusBadGateway,
	CodeRequestCanceled:       statusClientClosed,
	CodeInternalError:         http.StatusInternalServerError,
	CodeDatabaseUnavailable:   http.StatusServiceUnavailable,
	CodeNotReady:              http.StatusServiceUnavailable,
	CodeTimeout:               http.StatusServiceUnavailable,
}

// statusClientClosed is for the log: the client went away before its answer.
const statusClientClosed = 499

// kinds are the statuses of the tree's kinds of error.
var kinds = []struct {
	kind   error
	status int
}{
	{tree.ErrNotFound, http.StatusNotFound},
	{tree.ErrConflict, http.StatusConflict},
	{tree.ErrInvalid, http.StatusBadRequest},
	{tree.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{tree.ErrLimit, http.StatusForbidden},
	{tree.ErrTimeout, http.StatusServiceUnavailable},
}

// toProblem is the one place where errors become answers. What it doesn't know
// is an internal error, whose cause only the log tells.
func toProblem(err error) Problem {
	var own *problem
	var fromTree *tree.Error
	var setting *summarize.SettingsError
	var demand *summarize.DemandError
	var fromReply *reply.Error
	switch {
	case errors.As(err, &own):
		return own.answer(statuses[own.code])
	case errors.As(err, &setting):
		return fieldAnswer(CodeInvalidSetting, setting.Setting, setting.Reason)
	case errors.As(err, &demand):
		return fieldAnswer(CodeInvalidDemand, demand.Field, demand.Reason)
	case errors.As(err, &fromReply):
		return fieldAnswer(Code(fromReply.Code), fromReply.Field, fromReply.Detail)
	case errors.As(err, &fromTree):
		for _, k := range kinds {
			if errors.Is(fromTree, k.kind) {
				p := problem{code: Code(fromTree.Code), field: fromTree.Field, detail: fromTree.Detail}
				return p.answer(k.status)
			}
		}
	case errors.Is(err, keys.ErrUnknown):
		return answerOf(CodeInvalidKey, "The key is unknown or revoked.")
	case errors.Is(err, context.Canceled):
		return answerOf(CodeRequestCanceled, "The client went away.")
	case errors.Is(err, context.DeadlineExceeded):
		return answerOf(CodeTimeout, "The request took too long and was given up. If it was to change something, send it again with the same id.")
	}
	return fromDatabase(err)
}

func (p *problem) answer(status int) Problem {
	out := Problem{
		Type: "urn:coppice:problem:" + string(p.code), Title: titleOf(p.code), Status: status,
		Detail: p.detail, Code: p.code,
	}
	if p.field != "" {
		out.Field = &p.field
	}
	return out
}

func answerOf(code Code, detail string) Problem { return fieldAnswer(code, "", detail) }

func fieldAnswer(code Code, field, detail string) Problem {
	p := problem{code: code, field: field, detail: detail}
	return p.answer(statuses[code])
}

// abbreviations are the words of codes that people write otherwise.
var abbreviations = map[string]string{"id": "ID", "json": "JSON", "utf8": "UTF-8"}

// titleOf says a code in words: "parent_not_found" is "Parent not found".
func titleOf(code Code) string {
	words := strings.Split(string(code), "_")
	for i, word := range words {
		if a, ok := abbreviations[word]; ok {
			words[i] = a
		}
	}
	title := strings.Join(words, " ")
	return strings.ToUpper(title[:1]) + title[1:]
}

// fromDatabase takes errors of the database, which it knows by their SQLSTATE,
// and all others.
func fromDatabase(err error) Problem {
	var state interface {
		error
		SQLState() string
	}
	var network net.Error
	var unsent interface {
		error
		SafeToRetry() bool // nothing of the statement was sent, as the connection had broken before
	}
	code := ""
	if errors.As(err, &state) {
		code = state.SQLState()
	}
	switch {
	case code == "57014", code == "55P03", code == "40P01": // query_canceled, by statement_timeout; lock_not_available; deadlock_detected
		return answerOf(CodeTimeout, "The database took too long and the request was given up. If it was to change something, send it again with the same id.")
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P"), // connection, resources, shutdown
		code == "" && (errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &unsent) && unsent.SafeToRetry()):
		return answerOf(CodeDatabaseUnavailable, "The database doesn't answer. If the request was to change something, send it again with the same id.")
	}
	return answerOf(CodeInternalError, "Something broke in the server. Its log tells more under the X-Request-Id of this answer.")
}
