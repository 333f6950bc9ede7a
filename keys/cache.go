package keys

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxCached bounds the cache: far more keys than are in use at a time, and
// about a megabyte.
const maxCached = 4096

// cache holds verified keys for CacheTTL, by their hash: the secrets
// themselves stay out of memory. The zero value is empty.
type cache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]entry
}

type entry struct {
	key     Key
	expires time.Time
}

func (c *cache) get(hash [sha256.Size]byte, now time.Time) (Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[hash]
	if !ok || !now.Before(e.expires) {
		return Key{}, false
	}
	return e.key, true
}

// has tells whether there is an entry, expired or not.
func (c *cache) has(hash [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.entries[hash]
	return ok
}

func (c *cache) put(hash [sha256.Size]byte, key Key, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[[sha256.Size]byte]entry)
	}
	if len(c.entries) >= maxCached {
		c.shrink(now)
	}
	c.entries[hash] = entry{key: key, expires: now.Add(CacheTTL)}
}

func (c *cache) remove(hash [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, hash)
}

// shrink drops what expired or, where nothing did, everything: reading
// maxCached keys anew is cheaper than keeping track of which is oldest.
func (c *cache) shrink(now time.Time) {
	for hash, e := range c.entries {
		if !now.Before(e.expires) {
			delete(c.entries, hash)
		}
	}
	if len(c.entries) >= maxCached {
		clear(c.entries)
	}
}

func sum(hash []byte) (out [sha256.Size]byte) {
	copy(out[:], hash)
	return out
}
