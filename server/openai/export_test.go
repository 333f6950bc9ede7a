package openai

import "github.com/coppice-chat/coppice/server"

// WatchedSurface is Surface, and tells how many tries of requests have no client
// any more.
func (c Recognition) WatchedSurface() (server.Surface, func() int) {
	all := new(tries)
	return c.surface(all), func() (n int) {
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, list := range all.by {
			for _, t := range list {
				if t.outcome == deserted {
					n++
				}
			}
		}
		return n
	}
}
