package server

// A Code names a problem, for programs. It is stable, and openapi.yaml says
// what each code means. Errors of other packages bring codes of their own.
type Code string

// The codes that this package gives, or tells apart.
const (
	CodeAttachmentNotFound    Code = "attachment_not_found"
	CodeAttachmentTooLarge    Code = "attachment_too_large"
	CodeBodyTooLarge          Code = "body_too_large"
	CodeCrossOrigin           Code = "cross_origin"
	CodeDailyLimit            Code = "daily_limit"
	CodeDatabaseReadOnly      Code = "database_read_only"
	CodeDatabaseUnavailable   Code = "database_unavailable"
	CodeDuplicateField        Code = "duplicate_field"
	CodeDuplicateParameter    Code = "duplicate_parameter"
	CodeEmptyFile             Code = "empty_file"
	CodeForbiddenHost         Code = "forbidden_host"
	CodeIDConflict            Code = "id_conflict"
	CodeIncompleteBody        Code = "incomplete_body"
	CodeInternalError         Code = "internal_error"
	CodeInvalidCharacter      Code = "invalid_character"
	CodeInvalidCursor         Code = "invalid_cursor"
	CodeInvalidDemand         Code = "invalid_demand"
	CodeInvalidFile           Code = "invalid_file"
	CodeInvalidID             Code = "invalid_id"
	CodeInvalidIdempotencyKey Code = "invalid_idempotency_key"
	CodeInvalidJSON           Code = "invalid_json"
	CodeInvalidKey            Code = "invalid_key"
	CodeInvalidLimit          Code = "invalid_limit"
	CodeInvalidParameter      Code = "invalid_parameter"
	CodeInvalidPreview        Code = "invalid_preview"
	CodeInvalidQuery          Code = "invalid_query"
	CodeInvalidSetting        Code = "invalid_setting"
	CodeInvalidTag            Code = "invalid_tag"
	CodeInvalidUTF8           Code = "invalid_utf8"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeMissingBody           Code = "missing_body"
	CodeMissingField          Code = "missing_field"
	CodeMissingKey            Code = "missing_key"
	CodeNotPermitted          Code = "not_permitted"
	CodeNotReady              Code = "not_ready"
	CodePreconditionFailed    Code = "precondition_failed"
	CodeRateLimited           Code = "rate_limited"
	CodeReplyStopped          Code = "reply_stopped"
	CodeRequestCanceled       Code = "request_canceled"
	CodeRouteNotFound         Code = "route_not_found"
	CodeSignInFailed          Code = "sign_in_failed"
	CodeSignInUnavailable     Code = "sign_in_unavailable"
	CodeStorageFull           Code = "storage_full"
	CodeTimeout               Code = "timeout"
	CodeTooDeep               Code = "too_deep"
	CodeTooManyStreams        Code = "too_many_streams"
	CodeUnknownField          Code = "unknown_field"
	CodeUnknownFormat         Code = "unknown_format"
	CodeUnknownModel          Code = "unknown_model"
	CodeUnknownParameter      Code = "unknown_parameter"
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeWrongType             Code = "wrong_type"
)

// A Problem is the client's view of an error: problem details (RFC 9457).
type Problem struct {
	Code   Code    `json:"code"`
	Detail string  `json:"detail"` // what is wrong and how to fix it, for people
	Field  *string `json:"field,omitempty"`
	Status int     `json:"status"`
	Title  string  `json:"title"` // the code in words
	Type   string  `json:"type"`  // urn:coppice:problem: and the code
}
