package server

import (
	"strconv"
	"time"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/tree"
)

// newShare is the schema of this name.
type newShare struct {
	summaries *bool
	expiresAt *string
}

func (b *newShare) fields() []field {
	return []field{{"summaries", false, &b.summaries}, {"expires_at", false, &b.expiresAt}}
}

func (b *newShare) read(o reader.Object) error { return bind(o, b.fields()) }

// createdShare is the schema of this name.
type createdShare struct {
	tree.Share
	token string
}

// AppendJSON appends the link with its token, which needs no escape.
func (c createdShare) AppendJSON(dst []byte) []byte {
	dst = c.Share.AppendJSON(dst)
	dst = strconv.AppendQuote(append(dst[:len(dst)-1], `,"token":`...), c.token)
	return append(dst, '}')
}

func createShare(r *Request) (Answer, error) {
	b := r.body.(*newShare)
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	n := tree.NewShare{Summaries: b.summaries != nil && *b.summaries}
	if b.expiresAt != nil {
		if n.ExpiresAt, err = time.Parse(time.RFC3339, *b.expiresAt); err != nil {
			return nil, problemf(CodeInvalidParameter, "expires_at", "This is no time as 2026-01-31T12:00:00Z is one.")
		}
	}
	share, token, err := r.Store().Shares().Create(r.Context(), id, head, n)
	if err != nil {
		return nil, err
	}
	return answerCreated(createdShare{share, token}, true, "/v1/shared/"+token)
}

func listShares(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	shares, err := r.Store().Shares().All(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return answerPage(tree.Page[tree.Share]{Data: shares})
}

func revokeShare(r *Request) (Answer, error) {
	id, share, err := r.ids("share_id")
	if err != nil {
		return nil, err
	}
	if err := r.Store().Shares().Revoke(r.Context(), id, share); err != nil {
		return nil, err
	}
	return noContent{}, nil
}

// getShared answers anyone who has the link. A link that opens nothing costs one row,
// and nobody guesses the 128 bits of a link's secret. So wrong links are not counted:
// a count by address would lock out good links behind the same proxy.
func getShared(r *Request) (Answer, error) {
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	link, err := r.Store().Shares().Open(r.Context(), r.Value("token"))
	if err != nil {
		return nil, err
	}
	h := r.answer.Header()
	if err := r.server.countRequest(link.ID(), h); err != nil {
		return nil, err
	}
	shared, err := link.Read(r.Context(), p)
	if err != nil {
		return nil, err
	}
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Referrer-Policy", "no-referrer")
	return answerWith(shared)
}
