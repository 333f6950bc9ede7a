package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientOf is the address of the program that sent a request; the zero Addr is none.
// Where a trusted proxy passed the request on, it is the last address in
// X-Forwarded-For that is no trusted proxy's: a client may write what it likes into the
// header, and each proxy adds the address that it sees.
func (s *Server) clientOf(r *http.Request) netip.Addr {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	client := plainAddress(remote.Addr())
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusts(client) {
			break
		}
		address, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(hop), "[]"))
		if withPort, portErr := netip.ParseAddrPort(strings.TrimSpace(hop)); portErr == nil {
			address, err = withPort.Addr(), nil
		}
		if err != nil {
			break
		}
		client = plainAddress(address)
	}
	return client
}

// trusts tells whether an address is a trusted proxy's.
func (s *Server) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(s.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

func plainAddress(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
