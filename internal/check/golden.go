package check

import (
	"flag"
	"os"
	"path/filepath"
)

// Update is set by go test -update: files that tests compare with are written anew.
var Update = flag.Bool("update", false, "write what the tests got to the files that they compare it with")

// Golden compares what a test got with a file.
func Golden(t T, path, got string) {
	t.Helper()
	if *Update {
		NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s differs (run with -update if that is right): %v\ngot:\n%s\nwant:\n%s", path, err, got, want)
	}
}
