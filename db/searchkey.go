package db

import (
	"crypto/sha256"
	"encoding/base64"
	"math/bits"
)

// TenantKey is what the entries of a tenant's messages in the search index
// begin with: 48 bits of a hash. Another tenant's would have to be the same by
// chance, and then a search costs what both have; it still finds one's own.
func TenantKey(tenantID string) string {
	sum := sha256.Sum256([]byte(tenantID))
	return base64.StdEncoding.EncodeToString(sum[:6])
}

// SearchLevels is how many lengths of a word's hash there are in entries of
// the search index: 0, 2, 4 … bits.
const SearchLevels = 13

// SearchKey is a message's search_key: its tenant's key, and a letter for the
// length of a word's hash. The index has one entry for each hash that a tenant's
// messages have, and Postgres some 60 bytes for each entry. With whole words in
// it, a tenant of few messages would take more for them than for what was said.
// So the hash is longer the more the tenant has said: how many messages it has,
// times how long they are in the mean. An entry then has some tens of messages,
// and a search looks at the text of those that have all of its entries. The
// length of the message itself would spread a tenant's messages over many lengths
// of hash, each with entries of its own.
//
// Any length is found again. A wrong one costs room, or time.
func SearchKey(tenantID string, messages int64, meanBytes int) string {
	const usual = 700 // bytes for which a hash more is worth its room
	said := max(1, uint64(messages)*uint64(meanBytes)/usual)
	level := min(SearchLevels-1, (bits.Len64(said)-1)/2)
	return TenantKey(tenantID) + string(rune('a'+level))
}
