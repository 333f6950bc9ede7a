package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// replayFolder replays every conversation with a fork in it that the folder's
// files hold, a source for each folder in it. Other conversations are left out:
// every rule does the same with them.
func replayFolder(ctx context.Context, dir string) (sources []Source, skipped []string, err error) {
	count := tokens.O200k()
	byFolder := map[string]*Source{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".json", ".jsonl", ".traj", ".zip"}, filepath.Ext(path)) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		var found bundles
		if err := found.read(ctx, path); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
			return nil
		}
		folder, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		for _, b := range found {
			h := newHistory(b, count)
			if h.forks() == 0 {
				continue
			}
			if byFolder[folder] == nil {
				byFolder[folder] = newSource(folder, 0)
			}
			byFolder[folder].replay(h, narrow(h.longest()/2))
		}
		return nil
	})
	for _, s := range byFolder {
		sources = append(sources, *s)
	}
	slices.SortFunc(sources, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return sources, skipped, err
}

// narrow are the default settings for a window so small that the least amounts
// worth folding have to shrink with it.
func narrow(window int) summarize.Settings {
	s := summarize.Defaults()
	s.MaxContextTokens, s.ReservedTokens = max(window, 1), 0
	s.MinRecentMessages, s.MinFoldMessages, s.MinFoldTokens = 2, 2, 0
	return s
}

// bundles is a store that keeps what an import brings.
type bundles []tree.Bundle

func (*bundles) AddAttachment(context.Context, string, []byte) (tree.Attachment, bool, error) {
	return tree.Attachment{}, true, nil
}

func (*bundles) Attachments(context.Context, ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	return nil, nil
}

func (b *bundles) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (b *bundles) Import(_ context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	*b = append(*b, in...)
	return make([]tree.Imported, len(in)), nil
}

func (b *bundles) read(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = transfer.Import(ctx, b, f, transfer.Options{})
	return err
}
