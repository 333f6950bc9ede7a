package server

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// streamBuffer is how much of a streamed answer is put together before it is
// sent, in bytes. Until then an error still becomes a problem.
const streamBuffer = 32 << 10

// bePatient gives a streamed request or answer as much time as it takes, and
// each piece of it as much as a whole request: a client may be slow, but not
// fall silent. A ResponseWriter without deadlines, as tests have, has nothing
// to move.
func bePatient(c echo.Context, patience time.Duration) {
	connection := http.NewResponseController(c.Response().Writer)
	// Also where no body is to come: the server watches the connection
	// meanwhile, and takes a deadline that passes for a client that left.
	_ = connection.SetReadDeadline(time.Time{})
	_ = connection.SetWriteDeadline(time.Time{})
	c.Request().Body = patientBody{c.Request().Body, connection, patience}
	c.Response().Writer = patientWriter{c.Response().Writer, connection, patience}
}

type patientBody struct {
	io.ReadCloser
	connection *http.ResponseController
	patience   time.Duration
}

func (b patientBody) Read(p []byte) (int, error) {
	_ = b.connection.SetReadDeadline(time.Now().Add(b.patience))
	n, err := b.ReadCloser.Read(p)
	_ = b.connection.SetReadDeadline(time.Time{})
	return n, err
}

type patientWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
	patience   time.Duration
}

func (w patientWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
