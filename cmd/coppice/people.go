package main

import (
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/server/oidc"
)

// peopleFlags say who signs people in, and what these may do.
type peopleFlags struct {
	AuthHeader        string        `placeholder:"NAME" help:"Header in which a trusted proxy names the user, such as X-Forwarded-User."`
	AuthGroupsHeader  string        `placeholder:"NAME" help:"Header in which it names the user's groups, such as X-Forwarded-Groups."`
	Issuer            string        `name:"oidc-issuer" placeholder:"URL" help:"OpenID issuer at which the page signs people in."`
	ClientID          string        `name:"oidc-client-id" placeholder:"ID" help:"What the issuer calls this server."`
	ClientSecret      string        `name:"oidc-client-secret" placeholder:"SECRET" help:"The client's secret. Without it, a public client."`
	RedirectURL       string        `name:"oidc-redirect-url" placeholder:"URL" help:"Where the issuer sends browsers back to: https://HOST/auth/callback."`
	UserClaim         string        `name:"oidc-user-claim" default:"email" placeholder:"NAME" help:"Claim that is the user's id (${default})."`
	GroupsClaim       string        `name:"oidc-groups-claim" default:"groups" placeholder:"NAME" help:"Claim that has the user's groups (${default})."`
	TenantClaim       string        `name:"oidc-tenant-claim" placeholder:"NAME" help:"Claim that is the user's tenant. Without it, --auth-tenant."`
	Session           time.Duration `name:"oidc-session" default:"8h" placeholder:"DURATION" help:"Time after which people sign in again (${default})."`
	AuthTenant        string        `default:"default" placeholder:"ID" help:"Tenant whose people they are (${default})."`
	AuthAdmin         []string      `placeholder:"USER" help:"Users who are admins of the tenant."`
	AuthMemberGroup   []string      `placeholder:"GROUP" help:"Groups whose people may come. Without it, everybody who is signed in."`
	AuthAdminGroup    []string      `placeholder:"GROUP" help:"Groups whose people are admins of the tenant."`
	AuthOperatorGroup []string      `placeholder:"GROUP" help:"Groups whose people are operators of all tenants."`
}

func (f *peopleFlags) people() access.People {
	return access.People{Tenant: f.AuthTenant, Admins: f.AuthAdmin, MemberGroups: f.AuthMemberGroup, AdminGroups: f.AuthAdminGroup, OperatorGroups: f.AuthOperatorGroup}
}

func (f *peopleFlags) signIn() oidc.Config {
	return oidc.Config{
		Issuer: f.Issuer, ClientID: f.ClientID, ClientSecret: f.ClientSecret, RedirectURL: f.RedirectURL,
		UserClaim: f.UserClaim, GroupsClaim: f.GroupsClaim, TenantClaim: f.TenantClaim, Session: f.Session,
	}
}
