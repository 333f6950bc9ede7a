package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// On a full disk an append and /readyz say what is wrong. With space both go well again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	check.NoError(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m,mode=700"); err != nil {
		t.Skipf("no small disk can be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	from, err := makeDataDir()
	check.NoError(t, err)
	out, err := exec.Command("cp", "-a", from+"/.", dir).CombinedOutput()
	check.Need(t, err == nil, "cp: %v: %s", err, out)
	s := serve(t, []string{"OPENAI_API_KEY="}, "--data-dir", dir)
	path := newTalk(t, s.url)

	filler, zeros := filepath.Join(dir, "filler"), bytes.Repeat([]byte{0}, 1<<20)
	f := check.Must(os.Create(filler))(t)
	defer f.Close()
	for err == nil {
		_, err = f.Write(zeros)
	}
	message := map[string]string{"role": "user", "content": strings.Repeat("Not much room. ", 2000)}
	told := func(what string, status int, answer []byte, err error) {
		t.Helper()
		if err != nil || status != http.StatusServiceUnavailable || !bytes.Contains(answer, []byte(`"storage_full"`)) {
			t.Errorf("%s: status %d, %v: %s", what, status, err, answer)
		}
	}
	var status int
	var answer []byte
	for range 100 { // as long as the table has room
		if status, answer, err = try(t.Context(), http.MethodPost, s.url+path+"/messages", message); status != http.StatusCreated {
			break
		}
	}
	told("an append", status, answer, err)
	status, answer, err = try(t.Context(), http.MethodGet, s.url+"/readyz", nil)
	told("/readyz", status, answer, err)

	check.NoError(t, os.Remove(filler))
	f.Close()
	awaitReady(t, s.url)
	if status, answer, err := try(t.Context(), http.MethodPost, s.url+path+"/messages", message); err != nil || status != http.StatusCreated {
		t.Errorf("an append when there is space: status %d, %v: %s", status, err, answer)
	}
}
