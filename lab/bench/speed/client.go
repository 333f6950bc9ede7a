package speed

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// A client sends requests one after another on one connection, as load
// generators do: net/http's client costs more than some of the requests that
// are measured, on the same two cores.
type client struct {
	conn   net.Conn
	in     *bufio.Reader
	host   string
	used   time.Time // when the last answer came
	out    []byte    // request that is put together
	answer []byte    // body that came last
}

// patience bounds what a request may take.
const patience = 2 * time.Minute

func dial(addr string) (*client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), host: addr, used: time.Now()}, nil
}

// idle is how long a connection may rest. A server closes one that rests longer
// than it likes, and so does the client before that.
const idle = 30 * time.Second

func (c *client) close() { c.conn.Close() }

// do sends a request, and gives the body of an answer that has the status. The
// body is good until the next request.
func (c *client) do(method, path string, body []byte, status int) ([]byte, error) {
	out := append(c.out[:0], method...)
	out = append(append(out, ' '), path...)
	out = append(append(out, " HTTP/1.1\r\nHost: "...), c.host...)
	if body != nil {
		out = append(out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(body)), 10)
	}
	out = append(append(out, "\r\n\r\n"...), body...)
	c.out = out
	if time.Since(c.used) > idle {
		fresh, err := dial(c.host)
		if err != nil {
			return nil, err
		}
		c.conn.Close()
		c.conn, c.in = fresh.conn, fresh.in
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(out); err != nil {
		return nil, err
	}
	got, err := c.read()
	c.used = time.Now()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if got != status {
		return nil, fmt.Errorf("%s %s: status %d: %s", method, path, got, c.answer)
	}
	return c.answer, nil
}

// read reads one answer.
func (c *client) read() (status int, err error) {
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, fmt.Errorf("no answer in HTTP: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	length, chunked := 0, false
	for {
		if line, err = c.line(); err != nil {
			return 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) { // as net/http's server spells them
		case "Content-Length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case "Transfer-Encoding":
			chunked = true
		}
	}
	c.answer = c.answer[:0]
	if !chunked {
		return status, c.take(length)
	}
	for {
		if line, err = c.line(); err != nil {
			return 0, err
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return 0, err
		}
		if err := c.take(int(size)); err != nil {
			return 0, err
		}
		if _, err := c.line(); err != nil || size == 0 { // the end of the chunk, or of the trailer
			return status, err
		}
	}
}

func (c *client) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// take appends n bytes to the answer.
func (c *client) take(n int) error {
	have := len(c.answer)
	if cap(c.answer)-have < n {
		c.answer = append(make([]byte, 0, 2*(have+n)), c.answer...)
	}
	c.answer = c.answer[:have+n]
	_, err := io.ReadFull(c.in, c.answer[have:])
	return err
}
