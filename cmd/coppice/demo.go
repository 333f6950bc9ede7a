package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/coppice-chat/coppice/testdata"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// importDemo imports the demonstration conversation, whose ids are the same in
// every installation. A second time adds nothing.
func importDemo(ctx context.Context, store *tree.Store, log *slog.Logger) error {
	report, err := transfer.Import(ctx, store, bytes.NewReader(testdata.Demo), transfer.Options{PublicIDs: true})
	if err != nil {
		return fmt.Errorf("the demonstration conversation: %w", err)
	}
	log.Info("imported the demonstration conversation", "messages", report.Messages, "added", report.Added)
	return nil
}
