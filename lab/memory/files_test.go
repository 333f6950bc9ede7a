package memory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm"
)

// Whoever is told of a request answers it by a file.
func TestFileModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &FileModel{Dir: dir, Told: func(request, answer string) {
		said, err := os.ReadFile(request)
		if err != nil || !strings.Contains(string(said), "######## user\nThe oaks.\n") {
			t.Errorf("%s is %q, %v", request, said, err)
		}
		// Whole at once, as an editor saves.
		if err := os.WriteFile(answer+".part", []byte("Of oaks."), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(answer+".part", answer); err != nil {
			t.Error(err)
		}
	}}
	for range 2 {
		r, err := m.Complete(t.Context(), llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"The oaks."}`)}})
		if err != nil || r.Text != "Of oaks." || r.FinishReason != "stop" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "answer-00[12].txt")); len(files) != 2 {
		t.Errorf("answers %q", files)
	}
}
