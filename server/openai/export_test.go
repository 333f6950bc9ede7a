package openai

import "github.com/coppice-chat/coppice/server"

// WatchedAPI is Surface, and tells how many tries of requests there are, how
// many of them have a reply, and how many have no client any more.
func (c Recognition) WatchedAPI() (server.API, func() (tried, begun, left int)) {
	all := new(attempts)
	return c.api(all), func() (tried, begun, left int) {
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, list := range all.by {
			for _, t := range list {
				if tried++; t.reply != nil {
					begun++
				}
				if t.outcome == deserted {
					left++
				}
			}
		}
		return tried, begun, left
	}
}
