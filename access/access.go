// Package access says who asks for something, and what such a one may do. It is a
// value, and asks nobody: package server makes one for each request, and package tree
// reads and writes for it.
package access

import (
	"net/netip"
	"slices"

	"github.com/google/uuid"
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

// Has reports whether the principal may do what a role may.
func (p Principal) Has(r Role) bool {
	return slices.Index(Roles, p.Role) >= slices.Index(Roles, r)
}
