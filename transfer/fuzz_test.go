package transfer_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// FuzzImport feeds whole files, recognized by their content.
func FuzzImport(f *testing.F) {
	files := check.Must(filepath.Glob("../testdata/*.json*"))(f)
	for _, file := range files {
		in, err := os.Open(file)
		check.NoError(f, err)
		head, err := io.ReadAll(io.LimitReader(in, 4096))
		in.Close()
		check.NoError(f, err)
		f.Add(string(head))
	}
	f.Add("PK\x03\x04")
	f.Fuzz(func(t *testing.T, data string) {
		var b formattest.Bundles
		report, err := transfer.Import(t.Context(), &b, strings.NewReader(data), transfer.Options{})
		if err == nil && report.Format == "" {
			t.Error("no error and no format")
		}
		for _, one := range b {
			formattest.Check(t, one)
		}
	})
}
