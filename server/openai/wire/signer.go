package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// tokenPrefix begins every content of ours. The number is the version of the form.
const tokenPrefix = "coppice.v1."

func mac(key, payload []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(tokenPrefix))
	h.Write(payload)
	return h.Sum(nil)
}

// A SignedCompaction is what the encrypted_content of a compaction item says. Clients
// carry it and can't change it. It holds the summary's text, too, so that it still serves
// if the summary is gone. It is signed and not encrypted, because the text is that of the
// client's own conversation.
type SignedCompaction struct {
	Summary NodeID
	Head    uuid.UUID // the message at which a branch goes on after the item; uuid.Nil for none
	Text    string    // by which a model reads the summary
}

// signedIDs is how many bytes the ids have, before the text.
const signedIDs = 3 * len(uuid.UUID{})

// Sign returns the content of a compaction item: a signature, the ids and the text. The
// key has 32 random bytes.
func (c SignedCompaction) Sign(key []byte) string {
	payload := make([]byte, 0, signedIDs+len(c.Text))
	payload = append(append(append(payload, c.Summary.Conversation[:]...), c.Summary.Node[:]...), c.Head[:]...)
	payload = append(payload, c.Text...)
	return tokenPrefix + base64url.EncodeToString(append(mac(key, payload), payload...))
}

// VerifyCompaction reads the content of a compaction item that Sign made with the key. The summary may be gone, or may
// be another tenant's, so a caller looks it up within the tenant of the
// request. The error's field is encrypted_content.
func VerifyCompaction(key []byte, content string) (SignedCompaction, error) {
	rest, ours := strings.CutPrefix(content, tokenPrefix)
	if !ours {
		return SignedCompaction{}, fault.New(fault.Invalid, CodeValue, "encrypted_content",
			"This compaction item was made by another server, which alone can read it. Send the messages that it stands for, or compact them here.")
	}
	forged := fault.New(fault.Invalid, CodeValue, "encrypted_content",
		"This compaction item was changed on its way, or was signed with another key than this server's. Send it as it came, or the messages that it stands for.")
	raw, err := base64url.Strict().DecodeString(rest)
	if err != nil || len(raw) < sha256.Size+signedIDs || strings.ContainsAny(rest, "\r\n") {
		return SignedCompaction{}, forged
	}
	sum, payload := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(sum, mac(key, payload)) || !utf8.Valid(payload[signedIDs:]) {
		return SignedCompaction{}, forged
	}
	return SignedCompaction{NodeID{uuid.UUID(payload[:16]), uuid.UUID(payload[16:32])}, uuid.UUID(payload[32:48]), string(payload[signedIDs:])}, nil
}
