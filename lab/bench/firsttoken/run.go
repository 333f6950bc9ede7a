package firsttoken

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Config says what to measure. Database and Serve are required.
type Config struct {
	Database func(ctx context.Context) (url string, err error)
	// Serve starts a server on the database, in a process of its own, whose model
	// is at the base URL given, under the name Model.
	Serve func(ctx context.Context, database, models string) (addr string, err error)

	Lengths []int         // of conversations, in messages
	Rounds  int           // in which each way has its turn
	Streams int           // at once; 0 measures none
	Pieces  int           // of each of those streams
	Pause   time.Duration // between two pieces
	History int           // messages of a stateless client's history; 0 measures none
	Remark  func(format string, args ...any)
}

// Model is the name of the model that a server has.
const Model = "fake"

// The names of the ways.
const (
	Direct   = "direct"
	Proxy    = "proxy"
	Coppice  = "coppice"
	Siblings = "coppice, siblings" // of streams at once, all after one answer
)

// A Report is what was measured. Recorded is nil where the server has no such
// route.
type Report struct {
	Lengths  []Length   `json:"lengths"`
	Recorded *Length    `json:"recorded,omitempty"` // histories of a stateless client, which are recognized
	Streams  []Parallel `json:"streams,omitempty"`
}

// A Length is what the first token took in conversations of one length, by way.
type Length struct {
	Messages int                `json:"messages"`
	Prompt   int                `json:"prompt_bytes"`
	P50      map[string]float64 `json:"p50_ms"`
	P99      map[string]float64 `json:"p99_ms"`
}

// Added is what Coppice adds to a direct call at the median.
func (l Length) Added() float64 { return l.P50[Coppice] - l.P50[Direct] }

// A Parallel is what streams at once took by one way.
type Parallel struct {
	Way        string  `json:"way"`
	Streams    int     `json:"streams"`
	FirstP50   float64 `json:"first_p50_ms"`
	FirstP99   float64 `json:"first_p99_ms"`
	LongestGap float64 `json:"longest_gap_ms"` // between two tokens of any stream
	Seconds    float64 `json:"seconds"`        // until the last stream ended
}

// A session is one run.
type session struct {
	Config
	up     *upstream
	base   string // of the surface
	client *http.Client
}

// Run measures. A stream that fails ends it.
func Run(ctx context.Context, cfg Config) (r *Report, err error) {
	up, err := startUpstream()
	if err != nil {
		return nil, err
	}
	defer up.close()
	database, err := cfg.Database(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := db.Open(ctx, db.Config{URL: database, MaxConns: 4})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	addr, err := cfg.Serve(ctx, database, up.server.URL)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}
	defer transport.CloseIdleConnections()
	s := &session{Config: cfg, up: up, base: "http://" + addr + "/openai/v1/", client: &http.Client{Transport: transport}}
	r = &Report{}
	var shortest planted
	for i, n := range cfg.Lengths {
		cfg.Remark("A conversation of %d messages", n)
		p, err := plant(ctx, pool, n)
		if err == nil {
			_, err = pool.Exec(ctx, "analyze nodes") // sooner than autovacuum comes by
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			shortest = p
		}
		l, err := s.byTurns(ctx, n, s.response(p))
		if err != nil {
			return nil, err
		}
		r.Lengths = append(r.Lengths, l)
	}
	if cfg.History > 0 {
		if r.Recorded, err = s.recorded(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.Streams > 0 {
		cfg.Remark("%d streams at once", cfg.Streams)
		own := make([]way, cfg.Streams)
		for i := range own {
			p, err := plant(ctx, pool, cfg.Lengths[0])
			if err != nil {
				return nil, err
			}
			own[i] = s.response(p)
		}
		if r.Streams, err = s.parallel(ctx, own, s.response(shortest)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// response continues a conversation: each request is a sibling of the others, so
// that all of them read a branch of the same length.
func (s *session) response(p planted) way {
	body := fmt.Appendf(nil, `{"model":%q,"stream":true,"previous_response_id":%q,"input":"What do you think?"}`, Model, p.responseID())
	return way{name: Coppice, url: s.base + "responses", body: func() []byte { return body }, token: responseToken}
}

// past are the ways past Coppice, with the prompt that the model got last.
func (s *session) past() []way {
	prompt := *s.up.prompt.Load()
	body := func() []byte { return prompt }
	return []way{
		{name: Direct, url: s.up.server.URL + "/v1/chat/completions", body: body, token: completionToken},
		{name: Proxy, url: s.up.proxy.URL + "/v1/chat/completions", body: body, token: completionToken},
	}
}

// ask sends one request. The plain proxy breaks an answer off now and then on a
// busy machine: then it is asked again. Coppice is not.
func (s *session) ask(ctx context.Context, w way) (h heard, err error) {
	for range 3 {
		if h, err = ask(ctx, s.client, w); err == nil || w.name == Coppice || w.name == Siblings || ctx.Err() != nil {
			break
		}
	}
	return h, err
}

// warmUp is how many rounds are not counted.
const warmUp = 5

// byTurns measures the first token by all ways, one request at a time.
func (s *session) byTurns(ctx context.Context, messages int, coppice way) (l Length, err error) {
	l = Length{Messages: messages, P50: map[string]float64{}, P99: map[string]float64{}}
	if _, err := s.ask(ctx, coppice); err != nil {
		return l, err
	}
	ways := append(s.past(), coppice)
	l.Prompt = len(ways[0].body())
	took := map[string][]time.Duration{}
	for round := range s.Rounds + warmUp {
		for i := range ways { // another one begins each round
			w := ways[(round+i)%len(ways)]
			h, err := s.ask(ctx, w)
			if err != nil {
				return l, err
			}
			if round >= warmUp {
				took[w.name] = append(took[w.name], h.first)
			}
		}
	}
	for name, all := range took {
		l.P50[name], l.P99[name] = quantile(all, 50), quantile(all, 99)
	}
	return l, nil
}

// recorded measures a client that sends its whole history each time and has it
// recorded: the server recognizes all but the last message. It is nil where the
// server has no such route.
func (s *session) recorded(ctx context.Context) (*Length, error) {
	var history []string
	for i := range s.History {
		role, size := "user", questionSize
		if i%2 == 1 {
			role, size = "assistant", answerSize
		}
		history = append(history, fmt.Sprintf(`{"role":%q,"content":"%d %s"}`, role, i, llmtest.Text(size)))
	}
	asked := 0
	w := way{name: Coppice, url: s.base + "chat/completions", token: []byte(`"content":"token`), header: map[string]string{"X-Session-Id": "bench"}}
	w.body = func() []byte {
		asked++
		return fmt.Appendf(nil, `{"model":%q,"stream":true,"store":true,"messages":[%s,{"role":"user","content":"Question %d"}]}`, Model, strings.Join(history, ","), asked)
	}
	if s.History%2 == 1 {
		return nil, errors.New("a history ends with an answer: its messages must be even")
	}
	s.Remark("A history of %d messages, sent whole", s.History)
	l, err := s.byTurns(ctx, s.History, w)
	if e := (*statusError)(nil); errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed) {
		s.Remark("Recognition is not measured: the server has no chat completions")
		return nil, nil
	}
	return &l, err
}

// parallel measures streams at once, by each way: by Coppice, each in a
// conversation of its own, and then all after one answer.
func (s *session) parallel(ctx context.Context, own []way, one way) (out []Parallel, err error) {
	s.up.pieces.Store(int64(s.Pieces))
	s.up.pause.Store(int64(s.Pause))
	one.name = Siblings
	for _, w := range append(s.past(), own[0], one) {
		of := func(i int) way { return w }
		if w.name == Coppice {
			of = func(i int) way { return own[i] }
		}
		all, errs := make([]heard, s.Streams), make([]error, s.Streams)
		var group sync.WaitGroup
		begin := time.Now()
		for i := range s.Streams {
			group.Go(func() { all[i], errs[i] = s.ask(ctx, of(i)) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		p := Parallel{Way: w.name, Streams: s.Streams, Seconds: time.Since(begin).Seconds()}
		var first []time.Duration
		for _, h := range all {
			first = append(first, h.first)
			p.LongestGap = max(p.LongestGap, milliseconds(h.gap))
		}
		p.FirstP50, p.FirstP99 = quantile(first, 50), quantile(first, 99)
		out = append(out, p)
	}
	return out, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is a percentile, in milliseconds.
func quantile(all []time.Duration, percent int) float64 {
	slices.Sort(all)
	return milliseconds(all[min(len(all)*percent/100, len(all)-1)])
}
