package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A progress shows how far a file is read: as a bar on a terminal, and
// elsewhere as a line now and then, for what takes long.
type progress struct {
	out   *console
	bar   *progressbar.ProgressBar // nil: lines
	name  string
	size  int64 // -1 where it isn't known
	shown time.Time
}

// progressInterval is the time between two lines.
const progressInterval = 5 * time.Second

func newProgress(out *console, name string, size int64) *progress {
	p := &progress{out: out, name: name, size: size, shown: time.Now()}
	if out.progress {
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetDescription(oneLine(filepath.Base(name), 30)),
			progressbar.OptionSetWriter(out.errors),
			progressbar.OptionShowBytes(true),
			progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// read says that n bytes are read. A zip archive may read some twice.
func (p *progress) read(n int64) {
	if p.size >= 0 {
		n = min(n, p.size)
	}
	if p.bar != nil {
		_ = p.bar.Set64(n) // of no consequence
		return
	}
	if time.Since(p.shown) < progressInterval {
		return
	}
	p.shown = time.Now()
	if p.size > 0 {
		p.out.Remark("%s: read %s of %s, %d%%", p.name, megabytes(n), megabytes(p.size), 100*n/p.size)
	} else {
		p.out.Remark("%s: read %s", p.name, megabytes(n))
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
