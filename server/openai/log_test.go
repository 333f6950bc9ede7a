package openai_test

import (
	"strings"
	"sync"
)

// safeLog is a log that handlers write and tests read.
type safeLog struct {
	mu    sync.Mutex
	text  strings.Builder
	heard func(line string)
}

// hear has a function called with each line from now on.
func (l *safeLog) hear(heard func(line string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = heard
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		l.heard(string(p))
	}
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
