// Package access says who asks for something. It is a value, and decides by itself:
// package server makes one for each request, and package tree reads and writes for it.
package access

import (
	"net/netip"

	"github.com/google/uuid"
)

// A Principal is who a request acts for. The zero value but for the tenant is the
// program itself, or a command on the database.
type Principal struct {
	Tenant  string
	Key     uuid.UUID  // uuid.Nil where no key was needed
	User    string     // "" is no one of the tenant's people in particular
	Address netip.Addr // of the client; the zero value is none
	Request string     // id of the request
}
