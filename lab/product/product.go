// Package product builds the product's program from the source that the lab's go.mod
// names, and runs it.
package product

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const module = "github.com/coppice-chat/coppice"

// Build builds the program into a folder, and returns the program's path. It builds
// in the product's own module, so that the program has the versions of the product's
// go.mod. The current folder must be in the lab's module.
func Build(ctx context.Context, folder string) (string, error) {
	source, err := command(ctx, "", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("product.Build: run this in the folder lab of the repository: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(folder, "coppice"))
	if err != nil {
		return "", err
	}
	if _, err := command(ctx, strings.TrimSpace(source), "build", "-o", path, "./cmd/coppice"); err != nil {
		return "", fmt.Errorf("product.Build(%q): %w", folder, err)
	}
	return path, nil
}

// command runs the go command in a folder, and returns what it prints.
func command(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, failed.Stderr)
	}
	return string(out), err
}

// Command prepares a run of a program on a database, without the variables of this
// process that would change the program's settings.
func Command(ctx context.Context, program, databaseURL string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "COPPICE_") || strings.HasPrefix(v, "OPENAI_") })
	cmd.Env = append(cmd.Env, "COPPICE_DATABASE_URL="+databaseURL) // every user of the machine can read arguments
	return cmd
}

// FreeAddr returns an address at which nothing listens at the moment.
func FreeAddr() (string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return free.Addr().String(), free.Close()
}

// AwaitReady waits until a server is ready.
func AwaitReady(ctx context.Context, addr string) error {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			if res.Body.Close(); res.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return context.Cause(ctx)
}
