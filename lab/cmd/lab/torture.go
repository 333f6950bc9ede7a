package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/coppice-chat/coppice/lab/product"
	"github.com/coppice-chat/coppice/lab/torture"
)

type tortureCommand struct {
	torture.Config
	Verbose bool `short:"v" help:"Say what is going on."`
}

// Run attacks, and prints the report. It returns errBroken if a promise was
// broken, or if too little was checked.
func (cmd *tortureCommand) Run(ctx context.Context, out *printer) error {
	level := slog.LevelWarn
	if cmd.Verbose {
		level = slog.LevelInfo
	}
	cmd.Logger = slog.New(slog.NewTextHandler(out.remarks, &slog.HandlerOptions{Level: level}))
	dir, err := os.MkdirTemp("", "coppice-torture-program-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if cmd.Program, err = product.Build(ctx, dir); err != nil {
		return err
	}
	report, err := torture.Run(ctx, cmd.Config)
	if err != nil {
		return err
	}
	report.Print(out)
	if ctx.Err() == nil && report.Failed() {
		return errBroken
	}
	return ctx.Err()
}
