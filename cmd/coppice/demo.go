package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/testdata"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// demoID is the demonstration conversation's in every installation.
var demoID = uuid.MustParse("5c547ece-7328-5026-ab32-15a59da830f0")

// importDemo imports the demonstration conversation, unless it is there: what was
// pruned of it stays away.
func importDemo(ctx context.Context, store *tree.Store, log *slog.Logger) error {
	if _, err := store.Conversation(ctx, demoID); !errors.Is(err, fault.NotFound) {
		return err
	}
	report, err := transfer.Import(ctx, transfer.Into(store), bytes.NewReader(testdata.Demo), transfer.Options{PublicIDs: true})
	if err != nil {
		return fmt.Errorf("the demonstration conversation: %w", err)
	}
	log.Info("imported the demonstration conversation", "messages", report.Messages, "added", report.Added)
	return nil
}
