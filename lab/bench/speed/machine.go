package speed

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Machine is where something was measured.
type Machine struct {
	CPUs          int    `json:"cpus"`
	CPU           string `json:"cpu"` // "" where it can't be told
	OS            string `json:"os"`
	Go            string `json:"go"`
	Postgres      string `json:"postgres"`
	Fsync         string `json:"fsync"`
	SharedBuffers string `json:"shared_buffers"`
	Load          string `json:"load"` // averages over 1, 5 and 15 minutes as the run began: what else was going on
}

func describe(ctx context.Context, pool *pgxpool.Pool) (m Machine, err error) {
	m = Machine{CPUs: runtime.NumCPU(), CPU: cpuName(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	err = pool.QueryRow(ctx, "select current_setting('server_version'), current_setting('fsync'), current_setting('shared_buffers')").
		Scan(&m.Postgres, &m.Fsync, &m.SharedBuffers)
	return m, err
}

func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
