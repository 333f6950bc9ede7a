package server

import (
	"github.com/coppice-chat/coppice/replica"
	"github.com/coppice-chat/coppice/web"
)

// A Body says which parts of a route's request are decoded before its handler
// runs. With the zero Body nothing is decoded, and the handler reads the
// request itself.
type Body struct {
	make     func() body
	required bool
}

// must is a body that the request has to have, maybe one that it may leave out.
func must[T any, P decoded[T]]() Body  { return Body{func() body { return P(new(T)) }, true} }
func maybe[T any, P decoded[T]]() Body { return Body{func() body { return P(new(T)) }, false} }

type decoded[T any] interface {
	*T
	body
}

// noBody is that of a route whose request has none, or a file.
var noBody Body

const (
	idempotencyKey = "Idempotency-Key"
	lastEventID    = "Last-Event-ID"
	ifMatch        = "If-Match"
	position       = replica.Header // of routes that only read, and decide nothing: a replica may answer them
)

// native is the table of the routes that openapi.yaml describes. A test holds
// the two equal.
var native = []Route{
	{"POST", "/v1/conversations", 0, "", idempotencyKey, maybe[newConversation](), createConversation},
	{"GET", "/v1/conversations", SearchesByQuery, "limit cursor query name tag archived shapes", position, noBody, listConversations},
	{"DELETE", "/v1/conversations", Admins | Waits, "before", "", noBody, deleteConversations},
	{"GET", "/v1/conversations/{conversation_id}", 0, "", position, noBody, getConversation},
	{"PATCH", "/v1/conversations/{conversation_id}", 0, "", ifMatch, must[conversationUpdate](), updateConversation},
	{"DELETE", "/v1/conversations/{conversation_id}", 0, "", "", noBody, deleteConversation},
	{"GET", "/v1/conversations/{conversation_id}/tree", Streams | Reads, "preview", position, noBody, getTree},
	{"GET", "/v1/conversations/{conversation_id}/roots", 0, "limit cursor", position, noBody, listRoots},

	{"POST", "/v1/conversations/{conversation_id}/messages", 0, "", idempotencyKey, must[appendBody](), appendMessages},
	{"GET", "/v1/conversations/{conversation_id}/messages/{message_id}", 0, "", position, noBody, getMessage},
	{"PATCH", "/v1/conversations/{conversation_id}/messages/{message_id}", 0, "", "", must[messageUpdate](), updateMessage},
	{"DELETE", "/v1/conversations/{conversation_id}/messages/{message_id}", 0, "keep_below", "", noBody, pruneMessage},
	{"GET", "/v1/conversations/{conversation_id}/messages/{message_id}/children", 0, "limit cursor", position, noBody, listChildren},
	{"GET", "/v1/conversations/{conversation_id}/messages/{message_id}/newest-leaf", 0, "", position, noBody, getNewestLeaf},
	{"POST", "/v1/conversations/{conversation_id}/messages/{message_id}/fork", Forks, "siblings", idempotencyKey, maybe[newConversation](), forkMessage},

	{"GET", "/v1/conversations/{conversation_id}/branches", 0, "limit cursor", position, noBody, listBranches},
	{"GET", "/v1/conversations/{conversation_id}/compare", 0, "left right limit", position, noBody, compareBranches},
	{"GET", "/v1/conversations/{conversation_id}/branches/{head_id}/transcript", 0, "limit cursor", position, noBody, getTranscript},
	{"GET", "/v1/conversations/{conversation_id}/branches/{head_id}/context", 0, "max_context_tokens reserved_tokens recall attachments parts model", position, noBody, getContext},
	{"GET", "/v1/conversations/{conversation_id}/branches/{head_id}/explain", 0, "", "", noBody, explainBranch},
	{"GET", "/v1/conversations/{conversation_id}/branches/{head_id}/recall", Searches, "query limit max_tokens scope", position, noBody, recallBranch},

	{"POST", "/v1/conversations/{conversation_id}/branches/{head_id}/compactions", Waits, "", "", maybe[newCompaction](), createCompaction},
	{"POST", "/v1/conversations/{conversation_id}/branches/{head_id}/grafts", Waits, "", idempotencyKey, must[newGraft](), createGraft},
	{"GET", "/v1/conversations/{conversation_id}/usage", 0, "", position, noBody, getUsage},
	{"GET", "/v1/conversations/{conversation_id}/compactions", 0, "limit cursor", position, noBody, listCompactions},
	{"GET", "/v1/conversations/{conversation_id}/summaries/{summary_id}", 0, "", position, noBody, getSummary},
	{"POST", "/v1/conversations/{conversation_id}/summaries/{summary_id}/remake", Waits, "", "", maybe[newRemake](), remakeSummary},

	{"POST", "/v1/conversations/{conversation_id}/branches/{head_id}/replies", Streams | Follows, "", idempotencyKey, maybe[newReply](), createReply},
	{"GET", "/v1/conversations/{conversation_id}/replies/{message_id}/events", Streams | Follows, "", lastEventID, noBody, readReply},
	{"GET", "/v1/conversations/{conversation_id}/replies", 0, "", "", noBody, listReplies},
	{"DELETE", "/v1/conversations/{conversation_id}/replies/{message_id}", 0, "", "", noBody, stopReply},

	{"POST", "/v1/conversations/{conversation_id}/branches/{head_id}/shares", 0, "", "", maybe[newShare](), createShare},
	{"GET", "/v1/conversations/{conversation_id}/shares", 0, "", "", noBody, listShares},
	{"DELETE", "/v1/conversations/{conversation_id}/shares/{share_id}", 0, "", "", noBody, revokeShare},
	{"GET", "/v1/shared/{token}", Keyless | Links, "limit cursor", "", noBody, getShared},

	{"GET", "/v1/events", Streams | Watches, "follow", lastEventID, noBody, watchTenant},
	{"GET", "/v1/conversations/{conversation_id}/events", Streams | Watches, "follow", lastEventID, noBody, watchConversation},

	{"POST", "/v1/attachments", Streams | Uploads | Imports, "name", "", noBody, createAttachment},
	{"GET", "/v1/attachments/{hash}", Streams | Reads, "", "", noBody, getAttachment},

	{"GET", "/v1/audit-events", Admins, "limit cursor tenant_id", position, noBody, listAuditEvents},
	{"POST", "/v1/keys", Admins, "", "", must[newKey](), createKey},
	{"GET", "/v1/keys", Admins, "limit cursor tenant_id", "", noBody, listKeys},
	{"DELETE", "/v1/keys/{key_id}", Admins, "", "", noBody, revokeKey},
	{"GET", "/v1/tenants", Operators, "", "", noBody, listTenants},
	{"GET", "/v1/tenants/{tenant_id}", Operators | Waits, "size", "", noBody, getTenant},
	{"GET", "/v1/tenants/{tenant_id}/limits", Operators, "", "", noBody, getTenantLimits},
	{"PATCH", "/v1/tenants/{tenant_id}/limits", Operators, "", "", must[tenantLimits](), setTenantLimits},
	{"DELETE", "/v1/tenants/{tenant_id}", Operators | Waits, "", "", noBody, deleteTenant},
	{"GET", "/v1/me", Anybody, "", "", noBody, getMe},
	{"GET", "/v1/tags", 0, "archived", position, noBody, listTags},
	{"GET", "/v1/models", Anybody, "", "", noBody, listModels},
	{"POST", "/v1/models", 0, "", "", must[acceptedOffer](), acceptModels},
	{"GET", "/v1/ratings", Searches, "", position, noBody, getRatings},
	{"GET", "/v1/presets", Anybody, "", "", noBody, listPresets},
	{"GET", "/v1/recall", Searches, "query limit max_tokens", position, noBody, recallTenant},
	{"GET", "/v1/search", Searches, "query conversation_id since before sort limit cursor", position, noBody, searchMessages},
	{"GET", "/v1/conversations/{conversation_id}/export", Streams | Reads, "format head_id", position, noBody, exportConversation},
	{"POST", "/v1/imports", Streams | Uploads | Imports, "format dry_run summaries", "", noBody, createImport},

	{"GET", "/healthz", Keyless, "", "", noBody, getHealth},
	{"GET", "/readyz", Keyless, "", "", noBody, getReadiness},
	{"GET", "/metrics", Local, "", "", noBody, getMetrics},
	{"GET", "/openapi.yaml", Keyless, "", "", noBody, getSpec},
	{"GET", web.Docs, Keyless | Opens, "", "", noBody, getDocs},
}
