package embedded

import (
	"bytes"
	"io"
	"os"
	"strings"
	"time"
)

const (
	maxLogSize   = 4 << 20 // bytes; the log and the one before it have this much each
	maxTailSize  = 4 << 10
	maxTailLines = 20
)

// A serverLog is the file that the server's processes write to themselves, so
// that nothing is lost when the program that started them dies.
type serverLog struct {
	file  *os.File
	start int64 // the file's size when it was opened
}

func openServerLog(path string) (*serverLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	l := &serverLog{file: f}
	err = l.shrink()
	if err == nil {
		l.start, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// keepSmall bounds the log's size until done is closed.
func (l *serverLog) keepSmall(done <-chan struct{}) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			_ = l.shrink() // a log that grows is no reason to stop; the next start reports it
		}
	}
}

// shrink copies a log that is too large to its second file, and empties it. It is
// not renamed, because the server's processes have it open; they append, so they
// go on at its new end. A line that is written meanwhile may be lost.
func (l *serverLog) shrink() error {
	fi, err := l.file.Stat()
	if err != nil || fi.Size() <= maxLogSize {
		return err
	}
	older, err := os.OpenFile(l.file.Name()+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer older.Close()
	if _, err := io.Copy(older, io.NewSectionReader(l.file, max(fi.Size()-maxLogSize, 0), maxLogSize)); err != nil {
		return err
	}
	return l.file.Truncate(0)
}

// tail returns the last lines since the log was opened, to stand at the end of an
// error message.
func (l *serverLog) tail() string {
	fi, err := l.file.Stat()
	if err != nil {
		return ""
	}
	from := max(fi.Size()-maxTailSize, 0)
	if fi.Size() >= l.start {
		from = max(from, l.start)
	}
	b, err := io.ReadAll(io.NewSectionReader(l.file, from, maxTailSize))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	lines = lines[max(len(lines)-maxTailLines, 0):]
	return "\nThe end of " + l.file.Name() + ":\n  " + strings.Join(lines, "\n  ")
}
