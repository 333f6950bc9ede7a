package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A client sends requests one after another on one connection, as load generators
// do. The client of net/http takes longer than some of the requests.
type client struct {
	addr    string
	conn    net.Conn
	in      *bufio.Reader
	used    time.Time
	out     []byte
	answers bytes.Buffer
}

const (
	requestTimeout = 2 * time.Minute
	idle           = 30 * time.Second // after which a connection is opened anew: a server may have closed it
)

// do sends a request and returns the body of an answer with the status. The body
// is valid until the next request.
func (c *client) do(method, path string, body []byte, status int) ([]byte, error) {
	if c.conn == nil || time.Since(c.used) > idle {
		if c.conn != nil {
			c.conn.Close()
		}
		var err error
		if c.conn, err = net.Dial("tcp", c.addr); err != nil {
			return nil, err
		}
		c.in = bufio.NewReaderSize(c.conn, 64<<10)
	}
	c.out = append(append(append(append(append(c.out[:0], method...), ' '), path...), " HTTP/1.1\r\nHost: "...), c.addr...)
	if body != nil {
		c.out = append(c.out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	}
	c.out = append(append(c.out, "\r\n\r\n"...), body...)
	c.used = time.Now()
	if err := c.conn.SetDeadline(c.used.Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	c.answers.Reset()
	if _, err := io.Copy(&c.answers, answer.Body); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode != status {
		return nil, fmt.Errorf("%s %s: status %d: %s", method, path, answer.StatusCode, c.answers.Bytes())
	}
	return c.answers.Bytes(), nil
}

// get returns a variant that asks a server for paths by turns. shown reads the
// messages of an answer.
func get(name, addr string, paths []string, shown func(answer []byte) ([]string, error)) variant {
	c, next := &client{addr: addr}, 0
	return variant{
		name: name,
		jobs: []job{func(context.Context) (int, error) {
			next++
			answer, err := c.do("GET", paths[next%len(paths)], nil, http.StatusOK)
			return len(answer), err
		}},
		shows: func(context.Context) (texts []string, err error) {
			for _, path := range paths {
				answer, err := c.do("GET", path, nil, http.StatusOK)
				if err != nil {
					return nil, err
				}
				some, err := shown(answer)
				if err != nil {
					return nil, err
				}
				texts = append(texts, some...)
			}
			return texts, nil
		},
	}
}
