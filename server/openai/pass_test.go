package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai"
)

// TestPassedOn holds that requests with which the server has nothing to do go to the
// provider as they came, under its key alone, and that an error never tells the key.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	const key = "sk-provider"
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("Set-Cookie", "a=b")
		switch string(body) {
		case `{"status":400}`:
			w.WriteHeader(http.StatusBadRequest)
		case `{"status":401}`:
			w.WriteHeader(http.StatusUnauthorized)
		case `{"input":"long"}`:
			_, _ = io.WriteString(w, strings.Repeat("0.1,", 10<<20))
		}
		_, _ = io.WriteString(w, r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(provider.Close)
	a := newAPIWith(t, openai.Recognition{Provider: openai.Provider{BaseURL: provider.URL + "/v1", APIKey: key}})
	for _, test := range []struct {
		path, kind, body string
		status           int
		want             string
	}{
		{"/embeddings", "application/json", `{"model": "e"}`, 200, `/v1/embeddings {"model": "e"} Bearer ` + key},
		{"/completions", "application/json", `{}`, 200, `/v1/completions {} Bearer ` + key},
		{"/audio/transcriptions", "multipart/form-data; boundary=x", "--x\r\n", 200, "/v1/audio/transcriptions --x\r\n Bearer " + key},
		{"/audio/speech", "application/json", `{"status":400}`, 400, `/v1/audio/speech {"status":400} Bearer …`},
		{"/embeddings", "application/json", `{"status":401}`, 502, `"code":"model_not_authorized"`},
	} {
		status, got, header := a.send("acme", "POST", test.path, test.body, "Content-Type", test.kind, "X-Api-Key", "")
		if status != test.status || !strings.Contains(got, test.want) || header.Get("Set-Cookie") != "" || strings.Contains(got, a.secrets["acme"]) {
			t.Errorf("%s %s: %d %s %v", test.path, test.body, status, got, header)
		}
	}
	long := a.tells(200, "POST", "/embeddings", `{"input":"long"}`)
	check.That(t, len(long) >= 40<<20, "of a long answer, %d bytes came", len(long))
	without := a.again(func(s *setup) { s.recognition.Provider = openai.Provider{} })
	without.tells(404, "POST", "/embeddings", `{}`, "no provider")
}
