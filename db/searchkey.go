package db

import (
	"crypto/sha256"
	"encoding/base64"
	"math/bits"
)

// TenantKey returns the first characters of all entries of a tenant in the search
// index: 48 bits of a hash. If two tenants had the same hash by chance, a search
// of one would read the entries of both, and would still find only its own
// messages.
func TenantKey(tenantID string) string {
	sum := sha256.Sum256([]byte(tenantID))
	return base64.StdEncoding.EncodeToString(sum[:6])
}

// SearchLevels is how many lengths a word's hash can have in the search index: 0,
// 2, 4 … bits.
const SearchLevels = 13

// SearchKey returns a message's search_key: its tenant's key, and a letter for
// the length of a word's hash.
//
// The index has one entry for each different hash of a tenant's messages, and
// Postgres needs some 60 bytes for an entry. With whole words, the entries of a
// tenant with few messages would take more room than the messages. So the hash
// grows with what the tenant has said: the number of its messages times their
// mean length. An entry then stands for some tens of messages. A search reads the
// text of the messages that have all of its entries.
//
// The length of a single message must not count, because it would spread a
// tenant's messages over many lengths of hash, each with its own entries.
//
// A search finds messages of every length of hash. A length that doesn't fit
// costs room or time, and no hit.
func SearchKey(tenantID string, messages int64, meanBytes int) string {
	const usual = 700 // bytes for which a hash more is worth its room
	said := max(1, uint64(messages)*uint64(meanBytes)/usual)
	level := min(SearchLevels-1, (bits.Len64(said)-1)/2)
	return TenantKey(tenantID) + string(rune('a'+level))
}
