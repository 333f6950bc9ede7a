package server

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// KeyVerifier tells whose a key is. *keys.Keys is one.
type KeyVerifier interface {
	// Verify gives the key that a secret is, or keys.ErrUnknown.
	Verify(ctx context.Context, secret string) (keys.Key, error)
	// Any tells whether a key was ever made.
	Any(ctx context.Context) (bool, error)
}

// authenticate finds out whose request it is, before any other work is done
// for it. While nobody has made a key, and RequireKey is off, every request is
// the default tenant's, whatever Authorization header a client library sends.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !strings.HasPrefix(c.Path(), "/v1/") {
			return next(c)
		}
		ctx := c.Request().Context()
		call := callOf(ctx)
		if !s.cfg.RequireKey {
			made, err := s.cfg.Keys.Any(ctx)
			if err != nil {
				return err
			}
			if !made {
				call.tenant = tree.DefaultTenant
				return next(c)
			}
		}
		scheme, secret, _ := strings.Cut(c.Request().Header.Get("Authorization"), " ")
		secret = strings.TrimSpace(secret)
		if !strings.EqualFold(scheme, "Bearer") || secret == "" {
			return problemf(CodeMissingKey, "", "This server needs a key. Send the header Authorization: Bearer cop_…; `coppice keys create` makes one.")
		}
		key, err := s.cfg.Keys.Verify(ctx, secret)
		if err != nil {
			return err
		}
		call.tenant = key.TenantID
		return next(c)
	}
}

// store is the part of the store that the request may see.
func (s *Server) store(ctx context.Context) *tree.Store {
	return s.cfg.Store.ForTenant(callOf(ctx).tenant)
}
