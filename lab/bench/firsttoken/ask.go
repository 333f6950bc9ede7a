package firsttoken

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A way leads to the model: where a request goes, what it says, and what the
// first token looks like in the answer.
type way struct {
	name   string
	url    string
	body   func() []byte
	token  []byte            // stands in each event that brings text
	header map[string]string // besides the content type
}

// The tokens of the ways.
var (
	completionToken = []byte(`"content":"token `)
	responseToken   = []byte(`"type":"response.output_text.delta"`)
)

// A heard is what came of one answer.
type heard struct {
	first  time.Duration // until the first token
	gap    time.Duration // the longest between two tokens
	tokens int
}

// ask sends one request and reads its answer to the end.
func ask(ctx context.Context, client *http.Client, w way) (h heard, err error) {
	body := w.body()
	req, err := http.NewRequestWithContext(ctx, "POST", w.url, bytes.NewReader(body))
	if err != nil {
		return h, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range w.header {
		req.Header.Set(name, value)
	}
	begin := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		told, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		return h, &statusError{w.name, res.StatusCode, string(told)}
	}
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	last := begin
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return h, fmt.Errorf("%s: %w", w.name, err)
		}
		if !bytes.HasPrefix(line, []byte("data: ")) || !bytes.Contains(line, w.token) {
			continue
		}
		now := time.Now()
		if h.tokens++; h.tokens == 1 {
			h.first = now.Sub(begin)
		} else {
			h.gap = max(h.gap, now.Sub(last))
		}
		last = now
	}
	if h.tokens == 0 {
		return h, fmt.Errorf("%s: the answer has no token", w.name)
	}
	return h, nil
}

// A statusError is an answer that is no answer.
type statusError struct {
	way    string
	status int
	body   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.way, e.status, e.body)
}
