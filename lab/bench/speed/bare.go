package speed

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// Bare gives the floor of a server in Go: the statements of an append, a
// context and a page behind net/http. It takes Coppice's requests, checks
// nothing of them, keeps no log and no figures, and answers with bodies alone.
func Bare(pool *pgxpool.Pool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/conversations/{conversation}/messages", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID       uuid.UUID       `json:"id"`
			ParentID uuid.UUID       `json:"parent_id"`
			Role     string          `json:"role"`
			Content  json.RawMessage `json:"content"`
		}
		conversation, err := uuid.Parse(r.PathValue("conversation"))
		sent, readErr := io.ReadAll(r.Body)
		if err != nil || readErr != nil || json.Unmarshal(sent, &m) != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		t := text{body: fmt.Appendf(nil, `{"role":%q,"content":%s}`, m.Role, m.Content), tokens: 20}
		_, params := appendParams(conversation, m.ParentID, t, tree.Role(m.Role))
		params.ID = key(m.ID)
		node, err := db.AppendInTurn(r.Context(), pool, params)
		answerBare(w, http.StatusCreated, node.Body, err)
	})
	mux.HandleFunc("GET /v1/conversations/{conversation}/branches/{head}/context", func(w http.ResponseWriter, r *http.Request) {
		conversation, head, err := pathOf(r)
		budget := int64(defaultBudget)
		if r.URL.RawQuery != "" {
			budget = wideBudget
		}
		buffer := bareBuffers.Get().(*[]byte)
		defer bareBuffers.Put(buffer)
		out := append((*buffer)[:0], '[')
		if err == nil {
			err = db.EachViewRow(r.Context(), pool, viewParams(conversation, head, budget), func(row *db.GetViewRow) error {
				out = append(append(out, row.Body...), ',')
				return nil
			})
		}
		out[len(out)-1] = ']'
		*buffer = out
		answerBare(w, http.StatusOK, out, err)
	})
	mux.HandleFunc("GET /v1/conversations/{conversation}/branches/{head}/transcript", func(w http.ResponseWriter, r *http.Request) {
		conversation, head, err := pathOf(r)
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		out := []byte{'['}
		var rows []db.GetTranscriptRow
		if err == nil {
			rows, err = db.New(pool).GetTranscript(r.Context(), pageParams(conversation, head, limit))
		}
		for _, row := range rows {
			out = append(append(out, row.Body...), ',')
		}
		out[len(out)-1] = ']'
		answerBare(w, http.StatusOK, out, err)
	})
	return mux
}

// bareBuffers are those that contexts are put together in.
var bareBuffers = sync.Pool{New: func() any { return new([]byte) }}

func pathOf(r *http.Request) (conversation, head uuid.UUID, err error) {
	if conversation, err = uuid.Parse(r.PathValue("conversation")); err == nil {
		head, err = uuid.Parse(r.PathValue("head"))
	}
	return conversation, head, err
}

func answerBare(w http.ResponseWriter, status int, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who asked knows when it fails
}
