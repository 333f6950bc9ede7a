package web_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/internal/check"
)

// snapshot leaves a picture of the page where COPPICE_SNAPSHOTS names a folder.
func (b *tab) snapshot(name string) {
	folder := os.Getenv("COPPICE_SNAPSHOTS")
	if folder == "" {
		return
	}
	b.picture(filepath.Join(folder, strings.ReplaceAll(b.t.Name(), "/", "_")+"-"+name+".png"))
}

func (b *tab) picture(file string) {
	b.t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, run(b, chromedp.CaptureScreenshot()), 0o644)
	}
	check.NoError(b.t, err)
}
