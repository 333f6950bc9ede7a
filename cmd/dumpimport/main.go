package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

type sink struct{ h bytes.Buffer }

func (*sink) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}
func (s *sink) Import(_ context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	for _, b := range in {
		j, err := json.Marshal(b)
		if err != nil {
			panic(err)
		}
		s.h.Write(j)
	}
	return make([]tree.Imported, len(in)), nil
}

func main() {
	for _, root := range os.Args[1:] {
		filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(p, ".txt") || strings.HasSuffix(p, ".go") {
				return err
			}
			data, _ := os.ReadFile(p)
			formats := []string{""}
			if len(data) < 200_000 {
				formats = append(formats, transfer.Formats()...)
			}
			for _, f := range formats {
				var s sink
				r, err := transfer.Import(context.Background(), &s, bytes.NewReader(data), transfer.Options{Format: f})
				notes, _ := json.Marshal(r.Notes)
				r.Notes = nil
				fmt.Printf("%s as %q: %+v err=%v notes=%x bundles=%x\n", p, f, r, err, sha256.Sum256(notes), sha256.Sum256(s.h.Bytes()))
				if os.Getenv("FULL") != "" { fmt.Printf("%s\n%s\n", notes, s.h.Bytes()) }
			}
			return nil
		})
	}
}
