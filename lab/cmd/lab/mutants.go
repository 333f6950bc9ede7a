package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/coppice-chat/coppice/lab/mutants"
	"github.com/coppice-chat/coppice/lab/product"
)

type mutantsCommand struct {
	Only    string        `placeholder:"REGEXP" help:"Plant the faults whose name or file matches this regular expression."`
	List    bool          `help:"Show the list, and plant nothing."`
	Timeout time.Duration `default:"5m" placeholder:"DURATION" help:"How long the tests of one fault may take (${default})."`
	Torture time.Duration `placeholder:"DURATION" help:"Also run the torture for so long on each fault that it must find. Without it, no torture runs."`
}

// Run plants the chosen faults one after the other, and prints what came of
// each. It returns errBroken unless every fault was found.
func (cmd *mutantsCommand) Run(ctx context.Context, out *printer) error {
	only, err := regexp.Compile(cmd.Only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	source, err := product.Dir(ctx)
	if err != nil {
		return err
	}
	faults, err := mutants.Load(source, only)
	if err != nil {
		return err
	}
	if cmd.List {
		for _, f := range faults {
			out.Line("%s", f)
		}
		return nil
	}
	results, err := mutants.Try(ctx, faults, mutants.Config{Source: source, Timeout: cmd.Timeout, Torture: cmd.Torture, Remark: out.Remark})
	if all := mutants.Table(out, results); err == nil && !all {
		return errBroken
	}
	return err
}
