package db

import (
	"crypto/sha256"
	"encoding/base64"
)

// TenantKey returns the key of a tenant's vectors: 48 bits of a hash. An index of
// vectors has it in its name. If two tenants had the same hash by chance, a question
// of one would read the vectors of both, and would still find only its own messages.
func TenantKey(tenantID string) string {
	sum := sha256.Sum256([]byte(tenantID))
	return base64.StdEncoding.EncodeToString(sum[:6])
}
