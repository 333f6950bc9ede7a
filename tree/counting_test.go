package tree_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A message whose client has left isn't counted to its end, and the error says why.
func TestCountsEndWithTheContext(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	leave()
	s, said := tree.New(nil), tree.Text(tree.RoleUser, "What is a coppice?")
	for name, count := range map[string]func() error{
		"Cost":    func() error { _, err := s.Cost(left, said.Message); return err },
		"Checked": func() error { _, err := s.Checked(left, []tree.NewMessage{said}); return err },
	} {
		if err := count(); !errors.Is(err, context.Canceled) || fault.Of(err).Kind != fault.Canceled {
			t.Errorf("%s: %v", name, err)
		}
	}
}
