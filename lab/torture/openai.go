package torture

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/openai/openai-go/v3/responses"
)

// askOpenAI has a client of OpenAI's API begin a conversation, each turn of which
// names the response before it. The client asks again as OpenAI's SDKs do, of any
// server. If no turn needed that, each message is stored once.
func (w *writer) askOpenAI(ctx context.Context, c *conversation, _ []*message) bool {
	talk, above, previous, turns := newConversation(c.tenant, w.report), noMark, "", 1+w.rng.IntN(6)
	for range turns {
		asked, question := w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
		body := map[string]any{"model": replyModel, "truncation": "auto", "input": question}
		if previous != "" {
			body["previous_response_id"] = previous
		}
		var got responses.Response
		a, attempts := w.persist(ctx, w.rng, request{tenant: c.tenant, method: http.MethodPost, path: "/openai/v1/responses", body: body, out: &got})
		if a.outcome() == refused && !a.again() {
			c.violate("refused", "%v of a client of OpenAI's API was refused: %s", asked, a.body)
		}
		if a.outcome() != acknowledged {
			return true
		}
		answer := got.OutputText()
		if above = markOf(answer); above != noMark && !w.marks.answers(answer, asked) {
			c.violate("changed", "%v of a client of OpenAI's API is answered %q, which the model didn't say to it", asked, answer)
		}
		id, err := uuid.Parse(a.header.Get("X-Coppice-Conversation-Id"))
		head, err2 := uuid.Parse(a.header.Get("X-Coppice-Head-Id"))
		if err != nil || err2 != nil || previous != "" && id != talk.id {
			c.violate("bad answer", "%v of a client of OpenAI's API is answered in %s", asked, id)
		}
		w.report.checked("turns over OpenAI's API", 1)
		if attempts > 1 || above == noMark { // an attempt may still land, or the answer broke off before its mark
			return true
		}
		previous = "resp_" + base64.RawURLEncoding.EncodeToString(slices.Concat(id[:], head[:]))
		talk.id = id
	}
	if tree, a := w.readTree(ctx, talk); a.outcome() == acknowledged {
		n := len(slices.DeleteFunc(tree.Data, func(n node) bool { return n.Kind != "message" }))
		if n != 2*turns {
			talk.violate("doubled", "a client of OpenAI's API was answered %d times, and %d messages are there", turns, n)
		}
	} else if a.outcome() == refused && !a.again() {
		talk.violate("lost", "the conversation of a client of OpenAI's API isn't there: %d %s", a.status, a.code)
	}
	return true
}
