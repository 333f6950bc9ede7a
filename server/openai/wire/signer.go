package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// A Signer signs and verifies the encrypted_content of compaction items. Clients
// carry the content and can't change it. It names a summary and the message up
// to which the branch is represented. It also holds the summary's text, so that
// it still serves if the summary is gone. It is signed and not encrypted,
// because the text is that of the client's own conversation.
type Signer struct{ keys [][]byte }

// tokenPrefix begins every content of ours. The number is the version of the form.
const tokenPrefix = "coppice.v1."

// NewSigner returns a Signer. The first key signs, and all keys are accepted, so
// that a key can be replaced. A key has 32 random bytes.
func NewSigner(keys ...[]byte) (*Signer, error) {
	if len(keys) == 0 {
		return nil, fault.New(fault.Internal, "no_key", "", "wire.NewSigner: there is no key.")
	}
	for _, key := range keys {
		if len(key) < 32 {
			return nil, fault.New(fault.Internal, "short_key", "", "wire.NewSigner: a key has %d bytes, and 32 is the least.", len(key))
		}
	}
	return &Signer{keys}, nil
}

func mac(key, payload []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(tokenPrefix))
	h.Write(payload)
	return h.Sum(nil)
}

// A SignedCompaction is what the content of a compaction item says.
type SignedCompaction struct {
	Summary NodeID
	Head    uuid.UUID // the message at which a branch goes on after the item; uuid.Nil for none
	Text    string    // by which a model reads the summary
}

// signedIDs is how many bytes the ids have, before the text.
const signedIDs = 3 * len(uuid.UUID{})

// Sign returns the content of a compaction item: a signature, the ids and the
// text.
func (s *Signer) Sign(c SignedCompaction) string {
	payload := make([]byte, 0, signedIDs+len(c.Text))
	payload = append(append(append(payload, c.Summary.Conversation[:]...), c.Summary.Node[:]...), c.Head[:]...)
	payload = append(payload, c.Text...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(mac(s.keys[0], payload), payload...))
}

// Verify reads the content of a compaction item. The summary may be gone, or may
// be another tenant's, so a caller looks it up within the tenant of the
// request. The error's field is encrypted_content.
func (s *Signer) Verify(content string) (SignedCompaction, error) {
	rest, ours := strings.CutPrefix(content, tokenPrefix)
	if !ours {
		return SignedCompaction{}, fault.New(fault.Invalid, CodeValue, "encrypted_content",
			"This compaction item was made by another server, which alone can read it. Send the messages that it stands for, or compact them here.")
	}
	forged := fault.New(fault.Invalid, CodeValue, "encrypted_content",
		"This compaction item was changed on its way, or was signed with a key that this server no longer has. Send it as it came, or the messages that it stands for.")
	raw, err := base64url.DecodeString(rest)
	if err != nil || len(raw) < sha256.Size+signedIDs || strings.ContainsAny(rest, "\r\n") {
		return SignedCompaction{}, forged
	}
	sum, payload := raw[:sha256.Size], raw[sha256.Size:]
	for _, key := range s.keys {
		if hmac.Equal(sum, mac(key, payload)) && utf8.Valid(payload[signedIDs:]) {
			return SignedCompaction{NodeID{uuid.UUID(payload[:16]), uuid.UUID(payload[16:32])}, uuid.UUID(payload[32:48]), string(payload[signedIDs:])}, nil
		}
	}
	return SignedCompaction{}, forged
}
