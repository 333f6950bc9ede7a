package terminal

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Progress shows how much of a file has been read: by a bar on a terminal, and
// elsewhere by a line now and then.
type Progress struct {
	out   *Console
	bar   *progressbar.ProgressBar // nil: lines
	name  string
	size  int64 // -1 where it isn't known
	shown time.Time
}

// progressInterval is the time between two lines.
const progressInterval = 5 * time.Second

// Progress begins to show how much of a file has been read. A size of -1 is
// unknown.
func (out *Console) Progress(name string, size int64) *Progress {
	p := &Progress{out: out, name: name, size: size, shown: time.Now()}
	if out.Interactive {
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetDescription(OneLine(filepath.Base(name), 30)),
			progressbar.OptionSetWriter(out.Errors),
			progressbar.OptionShowBytes(true),
			progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// Read adds n bytes. Some bytes of a zip archive may be read twice.
func (p *Progress) Read(n int64) {
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

// End takes the bar away.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
