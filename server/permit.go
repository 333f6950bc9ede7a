package server

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/tree"
)

// permit is the one place that says what a request's principal may ask of a route. What
// it may read, which lies in the data, package tree says.
func (r *Request) permit() error {
	who, may := r.who, r.route.May
	switch {
	case who.Tenant == "": // of a route that needs no key
		return nil
	case may.has(Operators) && !who.Has(access.Operator):
		return notPermitted("This takes a key of the role %s.", access.Operator)
	case may.has(Admins) && !who.Has(access.Admin):
		return notPermitted("This takes a key of the role %s.", access.Admin)
	case who.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		return notPermitted("The key only reads.")
	case who.Conversation == uuid.Nil || may.has(Anybody):
		return nil
	case r.conversation() == uuid.Nil, may.has(Forks):
		return notPermitted("The key opens the conversation %s only.", who.Conversation)
	case r.conversation() != who.Conversation:
		return tree.ErrConversationNotFound
	}
	return nil
}

func notPermitted(format string, args ...any) error {
	return problemf(CodeNotPermitted, "", format, args...)
}

// tenantAsked returns the principal that a request of an admin is for: its own tenant's,
// or, of an operator's, that of the tenant it names.
func (r *Request) tenantAsked(named *string) (access.Principal, error) {
	who := r.who
	if named == nil || *named == who.Tenant {
		return who, nil
	}
	if !who.Has(access.Operator) {
		return who, notPermitted("Another tenant's takes a key of the role %s.", access.Operator)
	}
	who.Tenant = *named
	return who, nil
}
