package access

import (
	"slices"

	"github.com/coppice-chat/coppice/fault"
)

// People says which role those have whom others sign in: a proxy, or an OpenID issuer.
// Groups are as these name them.
type People struct {
	Tenant         string   // whose people they are, where nothing else says it
	Admins         []string // users, not groups
	MemberGroups   []string // who may come at all, besides admins and operators; none: everybody
	AdminGroups    []string
	OperatorGroups []string
}

// Principal returns who a user of these groups is. It is a fault.Invalid for what can't
// be a user's id, and a fault.Forbidden for those who may not come.
func (p People) Principal(user string, groups []string) (Principal, error) {
	in := func(names []string) bool { // no group is called "", whatever a list of none gives
		return slices.ContainsFunc(names, func(name string) bool { return name != "" && slices.Contains(groups, name) })
	}
	who := Principal{Tenant: p.Tenant, User: user, Role: Member}
	switch {
	case in(p.OperatorGroups):
		who.Role = Operator
	case in(p.AdminGroups), slices.Contains(p.Admins, user):
		who.Role = Admin
	case len(p.MemberGroups) > 0 && !in(p.MemberGroups):
		return Principal{}, fault.New(fault.Forbidden, "not_permitted", "", "None of your groups may use this server. Ask its operator: --auth-member-group names those that may.")
	}
	return who, CheckUser("user_id", user)
}
