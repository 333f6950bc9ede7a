package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// modelName is the model of the server that is measured.
const modelName = "fake"

// A model answers at once, with a few tokens, and keeps the last prompt.
type model struct {
	*llmtest.Server
	prompt atomic.Pointer[[]byte]
}

func newModel() *model {
	m := &model{}
	m.Server = llmtest.Start(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		m.prompt.Store(&req.Body)
		return llmtest.Chunks("The ", "answer ", "of a ", "model.")
	}))
	return m
}

// openAI measures the first token of an answer in conversations of several lengths,
// beside a direct call of the model with the prompt that the server sent.
func (r *run) openAI(ctx context.Context) (err error) {
	const tail = 100 // messages that a summary doesn't fold
	for _, n := range r.lengths {
		p := r.planter()
		at, err := p.line(ctx, max(2, n-tail))
		if err != nil {
			return err
		}
		if n > tail {
			body, _ := json.Marshal(map[string]string{"role": "user", "content": p.text(500)}) // strings always encode
			if _, err := p.store.Summaries().Add(ctx, at.id, tree.NewSummary{
				AnchorID: at.head, Range: tree.SummaryRange{LastSummarizedID: at.head, Model: "made up"}, Body: body,
			}); err != nil {
				return err
			}
			if at, err = p.more(ctx, at, tail); err != nil {
				return err
			}
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
		request := fmt.Appendf(nil, `{"model":%q,"stream":true,"previous_response_id":%q,"input":"What do you think?"}`, modelName, responseID(at))
		server := stream(nameServer, "http://"+r.addr+"/openai/v1/responses", request)
		if _, err := server.shows(ctx); err != nil { // gives the model its prompt
			return err
		}
		prompt := *r.model.prompt.Load()
		variants := []variant{server, stream(nameFloor, r.model.URL()+"/chat/completions", prompt)}
		if r.before != "" {
			variants = append(variants, stream(nameBefore, "http://"+r.before+"/openai/v1/responses", request))
		}
		if err := r.add(r.compare(ctx, fmt.Sprintf("first token, %d messages, prompt of %d KB", n, len(prompt)/1000), variants...)); err != nil {
			return err
		}
	}
	return nil
}

// responseID is the id of the answer that a line ends with, as server/openai makes
// it. An import of that package would bring the server's modules into the lab.
func responseID(at line) string {
	return "resp_" + base64.RawURLEncoding.EncodeToString(bytes.Join([][]byte{at.id[:], at.head[:]}, nil))
}

// stream returns the variant of one streamed answer after the other. A job ends with
// the first token; the rest of the answer is read before the next one begins.
func stream(name, url string, body []byte) variant {
	var open *answer
	return variant{
		name: name,
		jobs: []job{func(ctx context.Context) (bytes int, err error) {
			if open, err = ask(ctx, url, body); err != nil {
				return 0, err
			}
			text, err := open.next()
			return len(text), err
		}},
		after: func() error { _, err := open.rest(); return err },
		shows: func(ctx context.Context) ([]string, error) {
			a, err := ask(ctx, url, body)
			if err != nil {
				return nil, err
			}
			text, err := a.rest()
			return []string{text}, err
		},
	}
}

// An answer is a stream of tokens.
type answer struct {
	http.Response
	lines *bufio.Scanner
}

func ask(ctx context.Context, url string, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	a := &answer{*res, bufio.NewScanner(res.Body)}
	a.lines.Buffer(nil, 16<<20)
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		told, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		return nil, fmt.Errorf("POST %s: status %d: %s", url, res.StatusCode, told)
	}
	return a, nil
}

// next returns the next token, of a chat completion or of a response; "" at the end.
func (a *answer) next() (string, error) {
	for a.lines.Scan() {
		data, ok := bytes.CutPrefix(a.lines.Bytes(), []byte("data: {"))
		if !ok {
			continue
		}
		var event struct {
			Type    string
			Delta   json.RawMessage
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal(append([]byte("{"), data...), &event); err != nil {
			return "", err
		}
		text := ""
		if len(event.Choices) > 0 {
			text = event.Choices[0].Delta.Content
		} else if event.Type == "response.output_text.delta" {
			if err := json.Unmarshal(event.Delta, &text); err != nil {
				return "", err
			}
		}
		if text != "" {
			return text, nil
		}
	}
	return "", a.lines.Err()
}

// rest returns the tokens that are left, and ends the answer.
func (a *answer) rest() (string, error) {
	defer a.Body.Close()
	var all strings.Builder
	for {
		text, err := a.next()
		if text == "" || err != nil {
			return all.String(), err
		}
		all.WriteString(text)
	}
}
