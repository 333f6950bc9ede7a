//go:build !unix

package torture

import (
	"errors"
	"os"
)

// These systems have no private Postgres either, so a run ends before it comes
// to this.

func killProcess(int) error { return errors.ErrUnsupported }

func freezeProcess(*os.Process) error { return errors.ErrUnsupported }

func thawProcess(*os.Process) error { return errors.ErrUnsupported }
