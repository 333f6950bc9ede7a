package speed

import "context"

// An Axis is ...
type Axis struct{}

func (s *session) growth(ctx context.Context) error { return nil }
