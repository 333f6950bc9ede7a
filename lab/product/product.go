// Package product finds the source of the product that the lab works on, and
// builds the product's program. The lab's go.mod says where that source is.
package product

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/coppice-chat/coppice"

// Dir returns the folder of the product's source. The current folder must be in
// the lab's module.
func Dir(ctx context.Context) (string, error) {
	out, err := command(ctx, "", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("product.Dir: run this in the folder lab of the repository: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// Build builds the program into a folder, and returns the program's path. Extra
// flags go to go build. It builds in the product's own module, so that the
// program has the versions of the product's go.mod.
func Build(ctx context.Context, folder string, flags ...string) (string, error) {
	dir, err := Dir(ctx)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(folder, "coppice"))
	if err != nil {
		return "", err
	}
	args := append(append([]string{"build", "-o", path}, flags...), "./cmd/coppice")
	if _, err := command(ctx, dir, args...); err != nil {
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
