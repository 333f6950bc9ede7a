package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm"
)

// A FileModel is a model whose answers somebody writes: a person, or any program. Each
// request goes into a file of its folder, request-001.txt, and its answer is awaited in
// answer-001.txt. An answer that is there already is taken at once, so that a run can be
// repeated.
type FileModel struct {
	Dir   string
	Told  func(request, answer string) // is called when an answer is awaited; nil for nobody
	count int
}

// Name is the model's name.
func (m *FileModel) Name() string { return "files" }

// Complete writes the request and waits for the answer.
func (m *FileModel) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	const look = 200 * time.Millisecond
	m.count++
	request, answer := m.file("request"), m.file("answer")
	var b strings.Builder
	for _, raw := range req.Messages {
		said := chat.Read(raw)
		fmt.Fprintf(&b, "######## %s\n%s\n", said.Role, said.Text())
	}
	if err := os.WriteFile(request, []byte(b.String()), 0o644); err != nil {
		return llm.Response{}, err
	}
	for told := false; ; told = true {
		text, err := os.ReadFile(answer)
		switch {
		case err == nil:
			return llm.Response{Text: string(text), FinishReason: "stop"}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return llm.Response{}, err
		case !told && m.Told != nil:
			m.Told(request, answer)
		}
		select {
		case <-ctx.Done():
			return llm.Response{}, ctx.Err()
		case <-time.After(look):
		}
	}
}

// Stream is Complete.
func (m *FileModel) Stream(ctx context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	return m.Complete(ctx, req)
}

func (m *FileModel) file(kind string) string {
	return filepath.Join(m.Dir, fmt.Sprintf("%s-%03d.txt", kind, m.count))
}
