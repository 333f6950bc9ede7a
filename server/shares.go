package server

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/fault"
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

func (b *newShare) read(o object) error { return o.bind("", b.fields()) }

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
	share, token, err := r.Store().CreateShare(r.Context(), id, head, n)
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
	shares, err := r.Store().Shares(r.Context(), id)
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
	if err := r.Store().RevokeShare(r.Context(), id, share); err != nil {
		return nil, err
	}
	return noContent{}, nil
}

// getShared answers anyone who has the link. An address that sends too many links
// that open nothing is refused without a query. Links that opened lately pass all the
// same, because several clients may stand behind one proxy.
func getShared(r *Request) (Answer, error) {
	s, token, address := r.server, r.Value("token"), addressOf(r.RemoteAddr)
	if wait := s.limits.failedLinks.wait(address); wait > 0 && !s.opened.has(token) {
		r.answer.Header().Set("Retry-After", strconv.Itoa(wait))
		return nil, problemf(CodeRateLimited, "", "Too many requests for links that open nothing came from this address. Wait %d s.", wait)
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	link, err := r.Store().OpenLink(r.Context(), token)
	if err != nil {
		if errors.Is(err, fault.NotFound) {
			s.limits.failedLinks.debit(address)
		}
		return nil, err
	}
	s.opened.add(token)
	h := r.answer.Header()
	if err := s.countRequest(link.ID(), h); err != nil {
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

// openedLinks are the links that opened lately, by the digests of their tokens.
type openedLinks struct {
	mu       sync.Mutex
	byDigest map[[sha256.Size]byte]bool
}

func (l *openedLinks) has(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byDigest[sha256.Sum256([]byte(token))]
}

func (l *openedLinks) add(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byDigest == nil || len(l.byDigest) >= maxKeys {
		l.byDigest = map[[sha256.Size]byte]bool{}
	}
	l.byDigest[sha256.Sum256([]byte(token))] = true
}
