package dbtest

import (
	"net"
	"testing"
)

// TestBrokenConnectionGivesNoAnswer holds that an answer which comes before a broken
// connection is closed isn't read: it would look sound, and be used again.
func TestBrokenConnectionGivesNoAnswer(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	read := make(chan error, 1)
	c := &fragileConn{Conn: closesLate{near, read}, of: &Fragile{breaks: AfterSending}}
	go func() { // pgx's reader beside the write
		_, err := c.Read(make([]byte, 8))
		read <- err
	}()
	go func() {
		_, _ = far.Read(make([]byte, 8))
		_, _ = far.Write([]byte("answer"))
	}()
	if _, err := c.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil {
		t.Error("the answer was read")
	}
}

// A closesLate connection is closed after something was read.
type closesLate struct {
	net.Conn
	read chan error
}

func (c closesLate) Close() error {
	c.read <- <-c.read
	return c.Conn.Close()
}
