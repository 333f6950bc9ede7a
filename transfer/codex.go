package transfer

func detectCodex(s shape) bool { return false }

func parseCodex(in *input, emit func(Conversation) error, note func(Note)) error { return nil }
