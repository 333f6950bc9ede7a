// Package access says who asks for something, and what such a one may do. It is a
// value, and asks nobody: package server makes one for each request, and package tree
// reads and writes for it.
package access

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// A Role says what a principal may do besides reading and writing conversations.
type Role string

// The roles, each of which may do what those before it may.
const (
	Member   Role = "member"   // reads and writes conversations, and deletes its own
	Admin    Role = "admin"    // of a tenant: its keys, audit, limits, models, and all deletions
	Operator Role = "operator" // of all tenants
)

// Roles are all roles, the least first.
var Roles = []Role{Member, Admin, Operator}

// Everybody is no user's name: it stands for all of a tenant's.
const Everybody = "*"

// A Principal is who a request acts for. With a tenant alone, it is the program itself
// or a command on the database.
type Principal struct {
	Tenant string
	Key    uuid.UUID // uuid.Nil where no key was needed
	User   string    // one of the tenant's people; "" is the tenant itself
	Role   Role

	ReadOnly     bool
	Conversation uuid.UUID // the only one that it may name; uuid.Nil is any

	Address netip.Addr // of the client; the zero value is none
	Request string     // id of the request
}

// MaxUser is the largest number of characters in a user's id.
const MaxUser = 200

// CheckUser returns a fault.Invalid about a field for what can't be a user's id. "" can,
// and is nobody in particular.
func CheckUser(field, id string) error {
	invalid := func(detail string) error { return fault.New(fault.Invalid, "invalid_parameter", field, "%s", detail) }
	switch {
	case id == Everybody:
		return invalid("No user can be called *.")
	case utf8.RuneCountInString(id) > MaxUser:
		return invalid("It has over 200 characters.")
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return invalid("It has a control character, or is not valid UTF-8.")
	}
	return nil
}

// Reader is whose private conversations the principal reads, besides all that aren't
// private: its user's, or those of everybody where it is the tenant itself.
func (p Principal) Reader() string {
	if p.User == "" {
		return Everybody
	}
	return p.User
}

// Owns reports whether the principal may delete a user's conversation, and say who reads
// it. "" is no user in particular.
func (p Principal) Owns(userID string) bool {
	return p.User == "" || p.Has(Admin) || p.User == userID
}

// Has reports whether the principal may do what a role may.
func (p Principal) Has(r Role) bool {
	return slices.Index(Roles, p.Role) >= slices.Index(Roles, r)
}

type tenantKey struct{}

// With returns a context of work for a tenant: it is for the account of what that costs,
// never for what it may read.
func With(ctx context.Context, tenantID string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenantID)
}

// TenantOf returns the tenant that a context's work is for; "" is none.
func TenantOf(ctx context.Context) string {
	tenantID, _ := ctx.Value(tenantKey{}).(string)
	return tenantID
}
