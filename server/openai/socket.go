package openai

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// Limits of a WebSocket.
const (
	maxLanes  = 16 // streams of responses at a time
	maxQueued = 16 // requests that wait in a lane
)

// openSocket serves responses over a WebSocket. Each message asks for a response, whose
// events come back as messages. Requests of one stream_id are answered one after the
// other, those of several at once.
func (c Recognition) openSocket(r *server.Request) (server.Answer, error) {
	return &socket{request: r, recognition: c, lanes: map[string]chan []byte{}}, nil
}

// A socket is a client's WebSocket.
type socket struct {
	request     *server.Request
	recognition Recognition
	lanes       map[string]chan []byte // by stream_id; the reader's alone
	conn        *websocket.Conn

	mu   sync.Mutex
	said []history // of responses that are stored nowhere, the oldest first
}

// A history is all that was said up to the end of a response, behind what is stored.
type history struct {
	response     wire.NodeID
	previous     *wire.NodeID // the stored response that it goes on from; nil for none
	conversation *uuid.UUID   // the same of a conversation
	entries      []wire.Entry
}

// Write serves the WebSocket until the client closes it. A request that opens none is
// told to, or that they are off.
func (s *socket) Write(w http.ResponseWriter) (err error) {
	if s.recognition.NoSockets || !strings.EqualFold(s.request.Header.Get("Upgrade"), "websocket") {
		if !s.recognition.NoSockets {
			w.Header().Set("Upgrade", "websocket")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUpgradeRequired)
		_, err := w.Write(wire.NewError(http.StatusUpgradeRequired, "upgrade_required", "", "Send the request as POST, or open a WebSocket here unless this server has them off.").JSON())
		return err
	}
	// Which origins may call, the server has checked before.
	if s.conn, err = websocket.Accept(w, s.request.Request, &websocket.AcceptOptions{InsecureSkipVerify: true}); err != nil {
		return nil //nolint:nilerr // Accept has answered why
	}
	defer s.conn.CloseNow()
	s.conn.SetReadLimit(MaxBody)
	ctx, cancel := context.WithCancel(s.request.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for {
		_, message, err := s.conn.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client left, or may not stay
		}
		lane, err := wire.ParseLane(message)
		if err == nil && s.lanes[lane] == nil {
			if len(s.lanes) == maxLanes {
				err = fault.New(fault.TooMany, "too_many_streams", "stream_id", "The connection has %d values of stream_id, which is the most. Use one of them again.", maxLanes)
			} else {
				queue := make(chan []byte, maxQueued)
				s.lanes[lane] = queue
				running.Go(func() { s.serve(ctx, lane, queue) })
			}
		}
		if err == nil {
			select {
			case s.lanes[lane] <- message:
			default:
				err = fault.New(fault.TooMany, "too_many_streams", "stream_id", "%d requests wait in this stream_id, which is the most. Wait for an answer.", maxQueued)
			}
		}
		if err != nil {
			s.refuse(ctx, lane, err)
		}
	}
}

// serve answers the requests of a lane.
func (s *socket) serve(ctx context.Context, lane string, queue <-chan []byte) {
	for {
		select {
		case <-ctx.Done():
			return
		case message := <-queue:
			if err := s.answer(ctx, lane, message); err != nil {
				s.refuse(ctx, lane, err)
			}
		}
	}
}

// answer answers one request. One that goes on from a response which is stored nowhere
// gets its history, as long as this connection has it; a failure forgets it.
func (s *socket) answer(ctx context.Context, lane string, message []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			s.mu.Lock()
			s.request.Note(err)
			s.mu.Unlock()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // else the socket holds its replies until it ends
	out := &frames{header: http.Header{}, lane: lane, send: func(event []byte) error { return s.conn.Write(ctx, websocket.MessageText, event) }}
	r, err := s.request.Within(ctx, message, out)
	if err != nil {
		return err
	}
	req, err := wire.ParseCreate(message)
	if err != nil {
		return err
	}
	req.Stream = true
	failed := false
	if req.Previous != nil {
		if before, known := s.recall(*req.Previous); known {
			defer func(n wire.NodeID) {
				if err != nil || failed {
					s.forget(n)
				}
			}(*req.Previous)
			req.Previous, req.Conversation, req.Input.Entries = before.previous, before.conversation, slices.Concat(before.entries, req.Input.Entries)
		}
	}
	said := history{previous: req.Previous, conversation: req.Conversation, entries: req.Input.Entries}
	if string(chat.MemberOf(message, "generate")) == "false" { // it is to be continued, without an answer
		turn := wire.Turn{Node: wire.NodeID{Node: uuid.Must(uuid.NewV7())}, CreatedAt: time.Now(), Echo: req.Echo}
		said.response = turn.Node
		s.remember(said)
		stream := wire.NewStream(turn, -1)
		_, err := out.Write(stream.End(stream.Begin(nil), wire.End{Status: wire.Completed, At: time.Now()}))
		return err
	}
	a, err := s.recognition.respond(r, req, message, func(t wire.Turn) wire.Writer {
		said.response, said.entries = t.Node, slices.Clip(said.entries)
		return &keeping{wire.NewStream(t, -1), said, func(all history, end wire.End) {
			if failed = end.Status != wire.Completed; !failed && !req.Store {
				s.remember(all)
			}
		}}
	})
	if err != nil {
		return err
	}
	return a.Write(out)
}

// A keeping stream keeps the history with the answer before the client hears of its end,
// from which it may go on at once.
type keeping struct {
	*wire.Stream
	said history
	keep func(all history, end wire.End)
}

// Compact implements wire.Writer.
func (k *keeping) Compact(dst []byte, c wire.Compaction) []byte {
	k.said.entries = append(k.said.entries, wire.Entry{Compaction: &c})
	return k.Stream.Compact(dst, c)
}

// End implements wire.Writer.
func (k *keeping) End(dst []byte, end wire.End) []byte {
	k.said.entries = append(k.said.entries, wire.Entry{Message: end.Message})
	k.keep(k.said, end)
	return k.Stream.End(dst, end)
}

// remember keeps a history. All of a connection have MaxBody bytes together, and are of
// as many responses as it may have lanes.
func (s *socket) remember(h history) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, h)
	taken := 0
	for i, h := range slices.Backward(s.said) {
		for _, e := range h.entries {
			if e.Message != nil {
				taken += len(e.Message.Raw) + len(e.Message.Reasoning)
			}
			if e.Compaction != nil {
				taken += len(e.Compaction.Text)
			}
		}
		if len(s.said)-i > maxLanes || taken > MaxBody {
			s.said = s.said[i+1:]
			return
		}
	}
}

func (s *socket) recall(response wire.NodeID) (h history, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.said {
		if h.response == response {
			return h, true
		}
	}
	return history{}, false
}

func (s *socket) forget(response wire.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(h history) bool { return h.response == response })
}

// refuse tells why a request is refused.
func (s *socket) refuse(ctx context.Context, lane string, err error) {
	p := server.ProblemOf(err)
	status, _, _, _ := p.ForSDKs()
	event := sdk.JSON("type", "error", "status", status, "error", errorOf(p))
	_ = s.conn.Write(ctx, websocket.MessageText, inLane(event, lane)) // a client that left is told nothing
}

// inLane is an event with its stream_id.
func inLane(event []byte, lane string) []byte {
	if lane == "" {
		return event
	}
	return append(append(append(bytes.TrimSuffix(event, []byte("}")), `,"stream_id":`...), chat.MustMarshal(lane)...), '}')
}

// frames send server-sent events as messages of a WebSocket.
type frames struct {
	header http.Header
	lane   string
	send   func([]byte) error
	rest   []byte // of an event that isn't whole yet
}

// Header returns a header that nobody reads.
func (f *frames) Header() http.Header { return f.header }

// WriteHeader does nothing: a WebSocket has one status.
func (f *frames) WriteHeader(int) {}

// Flush does nothing: each event is sent at once.
func (f *frames) Flush() {}

// Write sends the events that are whole.
func (f *frames) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		text, rest, whole := bytes.Cut(f.rest, []byte("\n\n"))
		if !whole {
			return len(p), nil
		}
		f.rest = rest
		_, data, found := bytes.Cut(text, []byte("data: "))
		if !found || string(data) == "[DONE]" {
			continue
		}
		if err := f.send(inLane(slices.Clone(data), f.lane)); err != nil {
			return 0, err
		}
	}
}
