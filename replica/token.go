package replica

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// tokens turns positions into text for one tenant and back. A position grows with
// the writes of all tenants. So it is encrypted, each time otherwise: a tenant
// must not learn from it whether others wrote.
type tokens struct{ aead cipher.AEAD }

func newTokens(key []byte) (tokens, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return tokens{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return tokens{aead}, err
}

func (t tokens) encrypt(tenant string, p db.Position) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(p))
	return base64.RawURLEncoding.EncodeToString(t.aead.Seal(nil, nil, plain, []byte(tenant)))
}

// furthest returns the furthest position of tokens with commas between.
func (t tokens) furthest(tenant, sent string) (p db.Position, err error) {
	for token := range strings.SplitSeq(sent, ",") {
		if token = strings.TrimSpace(token); token == "" {
			continue
		}
		opened, err := t.open(tenant, token)
		if err != nil {
			return 0, fault.New(fault.Invalid, "invalid_parameter", Header, "The header isn't what an answer of this installation had for this tenant. Send it back as it came, or leave it out.").From(err)
		}
		p = max(p, opened)
	}
	return p, nil
}

func (t tokens) open(tenant, token string) (db.Position, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, err
	}
	plain, err := t.aead.Open(nil, nil, sealed, []byte(tenant))
	if err != nil {
		return 0, err
	}
	return db.Position(binary.BigEndian.Uint64(plain)), nil
}
