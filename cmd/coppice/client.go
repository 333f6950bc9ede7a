package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// A client asks a server over REST. The server runs elsewhere, or in this process.
type client struct {
	http    *http.Client
	base    string                      // URL, without a slash at its end
	key     string                      // "" for none
	named   bool                        // by --server
	catchUp func(context.Context) error // brings the index of searches up to date where no server does; nil for none
}

// indexed makes sure that a search finds all messages.
func (c *client) indexed(ctx context.Context) error {
	if c.catchUp == nil {
		return nil
	}
	return c.catchUp(ctx)
}

// do sends a request, and returns a good answer, whose body the caller closes. What a
// server refuses is a *fault.Error.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body io.Reader, contentType string) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	for until := time.Now().Add(restartTime); ; {
		res, err := c.ask(ctx, method, path, header, body)
		if err != nil || res.StatusCode < http.StatusBadRequest {
			return res, err
		}
		refused := c.refusal(res)
		_ = res.Body.Close()
		if method != http.MethodGet || c.catchUp != nil || !errors.Is(refused, fault.Unavailable) || time.Now().After(until) {
			return nil, refused
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// restartTime is how long a command that only reads waits for a server whose Postgres is
// started again.
const restartTime = 10 * time.Second

// ask sends a request, and returns the answer, whatever its status.
func (c *client) ask(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("User-Agent", "coppice/"+readBuildInfo().Version)
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	res.Body = &answerBody{res.Body, c, ctx}
	return res, nil
}

// An answerBody is an answer's body, whose errors say which server broke off.
type answerBody struct {
	io.ReadCloser
	client *client
	ctx    context.Context
}

func (b *answerBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && err != io.EOF {
		err = b.client.unreachable(b.ctx, err)
	}
	return n, err
}

// unreachable says which server didn't answer. It doesn't wrap the error, which could be
// taken for one of a database.
func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	hint := "Run the command again"
	if c.named {
		hint = "Check --server, or the variable COPPICE_SERVER"
	}
	return fmt.Errorf("the server %s doesn't answer: %v. %s", terminal.OneLine(c.base, 200), err, hint)
}

// problem is what a server says of a request that it refuses.
type problem struct {
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Field  string `json:"field"`
}

// kindOf are the kinds of errors that commands tell apart, by their statuses. Others are
// fault.Internal.
var kindOf = map[int]fault.Kind{
	http.StatusBadRequest: fault.Invalid, http.StatusUnprocessableEntity: fault.Invalid, http.StatusNotFound: fault.NotFound,
	http.StatusRequestEntityTooLarge: fault.TooLarge, http.StatusBadGateway: fault.Model, http.StatusServiceUnavailable: fault.Unavailable,
}

func (p problem) err(status int) error {
	kind, ok := kindOf[status]
	if !ok {
		kind = fault.Internal
	}
	return fault.New(kind, p.Code, p.Field, "%s", p.Detail)
}

// refusal reads the problem of an answer.
func (c *client) refusal(res *http.Response) error {
	var p problem
	if json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&p) != nil || p.Code == "" {
		return fmt.Errorf("%s answers %s, and not as Coppice does: check --server, or the variable COPPICE_SERVER", terminal.OneLine(c.base, 200), res.Status)
	}
	if res.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%s Give the key by --key, or the variable COPPICE_KEY", p.Detail)
	}
	if p.Code == string(server.CodeRouteNotFound) {
		return fmt.Errorf("%s has no %s: it is of an older version, or --server, or the variable COPPICE_SERVER, is wrong", terminal.OneLine(c.base, 200), res.Request.URL.Path)
	}
	return p.err(res.StatusCode)
}

// get reads one thing. Of a *json.RawMessage, into is the answer byte for byte.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, into)
}

// send sends a body, nil for none, and reads the answer, unless into is nil.
func (c *client) send(ctx context.Context, method, path string, body, into any) error {
	if body == nil {
		return c.call(ctx, method, path, nil, nil, into)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.call(ctx, method, path, nil, encoded, into)
}

func (c *client) call(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	kind := ""
	var from io.Reader
	if body != nil {
		kind, from = "application/json", bytes.NewReader(body)
	}
	res, err := c.do(ctx, method, path, query, from, kind)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if into == nil {
		return nil
	}
	return c.read(res, into)
}

// read reads an answer, as get does.
func (c *client) read(res *http.Response, into any) error {
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = answer
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s doesn't answer as Coppice does: %w. Check --server, or the variable COPPICE_SERVER", terminal.OneLine(c.base, 200), err)
	}
	return nil
}

// conversationPath is the path of a conversation, and of what the names lead to in it.
func conversationPath(id uuid.UUID, names ...string) string {
	return "/v1/conversations/" + id.String() + strings.Join(append([]string{""}, names...), "/")
}

// branchPath is the path of what stands at a branch.
func branchPath(id, head uuid.UUID, name string) string {
	return conversationPath(id, "branches", head.String(), name)
}

// A page is a page of a list, or several in one.
type page[T any] struct {
	tree.Page[T]
	Conversations []tree.Conversation `json:"conversations"` // whose titles match, of a search's first page
}

// readPages reads as many pages of a list as the flags ask for, as one page.
func readPages[T any](ctx context.Context, c *client, f pageFlags, path string, query url.Values) (all page[T], err error) {
	if f.Limit < 0 {
		return all, usagef("--limit is negative: give 0 for all, or a number")
	}
	all.Data, all.Next = []T{}, f.Cursor
	asked := url.Values{}
	for name, values := range query {
		asked[name] = values
	}
	for {
		limit := tree.MaxPage
		if f.Limit > 0 {
			limit = min(limit, f.Limit-len(all.Data))
		}
		asked.Set("limit", strconv.Itoa(limit))
		if all.Next != "" {
			asked.Set("cursor", all.Next)
		}
		var next page[T]
		if err := c.get(ctx, path, asked, &next); err != nil {
			return all, err
		}
		all.Data = append(all.Data, next.Data...)
		all.Conversations = append(all.Conversations, next.Conversations...)
		all.Next = next.Next
		if all.Next == "" || f.Limit > 0 && len(all.Data) >= f.Limit {
			return all, nil
		}
	}
}

// An event is a server-sent event.
type event struct {
	name string
	data []byte
}

// events reads server-sent events. One that closes the stream is the error that it tells
// of; the end of the stream is an error, too, unless the reader stops before.
func (c *client) events(ctx context.Context, stream io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		in := bufio.NewReader(stream)
		for e := (event{}); ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				if err == io.EOF {
					err = c.unreachable(ctx, io.ErrUnexpectedEOF)
				}
				yield(e, err)
				return
			}
			line = bytes.TrimRight(line, "\r\n")
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(field) == "event":
				e.name = string(value)
			case string(field) == "data" && e.data != nil:
				e.data = append(append(e.data, '\n'), value...)
			case string(field) == "data":
				e.data = value
			case len(line) == 0 && e.name == "stream.closed":
				var p problem
				_ = json.Unmarshal(e.data, &p) // whose detail is empty then
				yield(e, p.err(http.StatusServiceUnavailable))
				return
			case len(line) == 0:
				if e.name != "" && !yield(e, nil) {
					return
				}
				e = event{}
			}
		}
	}
}
