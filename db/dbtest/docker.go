package dbtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// containerTimeout is how long a server in a container gets to answer.
const containerTimeout = time.Minute

// startContainer starts Postgres in Docker, by a program in a module of its own.
// The container is gone when this process is.
func startContainer(ctx context.Context, image string) (*server, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/coppice-chat/coppice").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	password := rand.Text()
	cmd := exec.Command("go", "run", "./container", image)
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "tools")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	for name, value := range parameters() {
		cmd.Args = append(cmd.Args, name+"="+value)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	lifeline = append(lifeline, stdin)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: %s", cmd.Wait(), problems.String())
	}
	ctx, cancel := context.WithTimeout(ctx, containerTimeout)
	defer cancel()
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: strings.TrimSpace(address), Path: "postgres", RawQuery: "sslmode=disable&connect_timeout=5"}
	for { // the image first runs a server that doesn't listen
		s, err := connect(ctx, u.String())
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it doesn't answer: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
