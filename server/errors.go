package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

// problemf makes an error of the server's own. Its kind follows from the code.
func problemf(code Code, field, format string, args ...any) *fault.Error {
	return fault.New(kinds[code], string(code), field, format, args...)
}

// asError is errors.As in the form that a switch's case can use.
func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// Kinds of error that only HTTP knows.
const (
	noSuchMethod     fault.Kind = "no such method"
	unsupportedMedia fault.Kind = "unsupported media type"
	noMessages       fault.Kind = "no messages"
	changedSince     fault.Kind = "changed since"
)

// kinds are those of the server's own codes. Errors of other packages bring
// theirs.
var kinds = func() map[Code]fault.Kind {
	out := map[Code]fault.Kind{}
	for kind, codes := range map[fault.Kind][]Code{
		fault.Invalid: {
			CodeInvalidUTF8, CodeInvalidJSON, CodeInvalidCharacter, CodeTooDeep, CodeWrongType, CodeMissingBody, CodeIncompleteBody,
			CodeEmptyFile, CodeInvalidFile, CodeUnknownField, CodeDuplicateField, CodeMissingField,
			CodeInvalidID, CodeInvalidLimit, CodeInvalidCursor, CodeInvalidPreview, CodeInvalidIdempotencyKey, CodeInvalidQuery,
			CodeInvalidParameter, CodeInvalidTag, CodeUnknownParameter, CodeDuplicateParameter, CodeInvalidSetting, CodeInvalidDemand, CodeUnknownModel,
		},
		fault.Unauthorized: {CodeMissingKey, CodeInvalidKey},
		fault.NotFound:     {CodeRouteNotFound, CodeAttachmentNotFound},
		fault.Conflict:     {CodeIDConflict, CodeReplyStopped},
		fault.TooLarge:     {CodeBodyTooLarge, CodeAttachmentTooLarge},
		fault.TooMany:      {CodeRateLimited, CodeTooManyStreams},
		fault.Unavailable:  {CodeDatabaseUnavailable, CodeNotReady},
		fault.Timeout:      {CodeTimeout},
		fault.Canceled:     {CodeRequestCanceled},
		fault.Internal:     {CodeInternalError},
		fault.Forbidden:    {CodeForbiddenHost, CodeCrossOrigin, CodeNotPermitted},
		noSuchMethod:       {CodeMethodNotAllowed},
		unsupportedMedia:   {CodeUnsupportedMediaType},
		noMessages:         {CodeUnknownFormat},
		changedSince:       {CodePreconditionFailed},
	} {
		for _, code := range codes {
			out[code] = kind
		}
	}
	return out
}()

// statusClientClosed is for the log: the client went away before its answer.
const statusClientClosed = 499

// answers are the statuses of all kinds, and what a client is told of an error
// that has no code of its own.
var answers = map[fault.Kind]struct {
	status int
	code   Code
	detail string
}{
	fault.Invalid:      {status: http.StatusBadRequest},
	noMessages:         {status: http.StatusUnprocessableEntity},
	fault.Unauthorized: {status: http.StatusUnauthorized},
	fault.Full:         {status: http.StatusForbidden},
	fault.NotFound:     {status: http.StatusNotFound},
	fault.Conflict:     {status: http.StatusConflict},
	fault.TooLarge:     {status: http.StatusRequestEntityTooLarge},
	fault.TooMany:      {status: http.StatusTooManyRequests},
	fault.Model:        {status: http.StatusBadGateway},
	fault.ModelBusy:    {status: http.StatusServiceUnavailable},
	fault.ModelTimeout: {status: http.StatusGatewayTimeout},
	fault.Unavailable:  {status: http.StatusServiceUnavailable},
	fault.Timeout: {http.StatusServiceUnavailable, CodeTimeout,
		"The request took too long and was given up. If it was to change something, send it again with the same id."},
	fault.Canceled: {statusClientClosed, CodeRequestCanceled, "The client went away."},
	fault.Internal: {http.StatusInternalServerError, CodeInternalError,
		"Something broke in the server. Its log tells more under the X-Request-Id of this answer."},
	fault.Forbidden:  {status: http.StatusForbidden},
	noSuchMethod:     {status: http.StatusMethodNotAllowed},
	unsupportedMedia: {status: http.StatusUnsupportedMediaType},
	changedSince:     {status: http.StatusPreconditionFailed},
}

// ProblemOf returns what a client is told of an error. It is for APIs whose good
// answers may tell of one.
func ProblemOf(err error) Problem { return toProblem(err) }

// toProblem is the one place where errors become answers. An error of no kind
// in the table, or without a code, is an internal error, whose cause only the
// log tells.
func toProblem(err error) Problem {
	e := fault.Of(err)
	a, known := answers[e.Kind]
	if !known || e.Code == "" && a.code == "" {
		e, a = &fault.Error{}, answers[fault.Internal]
	}
	code, field, detail := Code(e.Code), e.Field, e.Detail
	if code == "" {
		code, detail = a.code, a.detail
	}
	out := Problem{
		Type: "urn:coppice:problem:" + string(code), Title: titleOf(code), Status: a.status,
		Detail: detail, Code: code,
	}
	if field != "" {
		out.Field = &field
	}
	return out
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
