// Package coppice_test holds the repository as a whole to its house rules.
package coppice_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coppice-chat/coppice"

// arrows says which packages of this module a package may import. Those in cmd/
// may import all but test code. A new package needs a line here.
var arrows = map[string][]string{
	"bench":            {"summarize", "tokens", "transfer", "tree"},
	"bench/speed":      {"db", "summarize", "tokens", "tree"}, // its floors are the SQL itself
	"bench/plot":       {},
	"server":           {"fault", "internal/rawjson", "keys", "reply", "summarize", "transfer", "tree", "web"},
	"server/openai":    {"chat", "fault", "internal/rawjson"},
	"web":              {},
	"chat":             {"fault", "internal/rawjson"},
	"reply":            {"chat", "fault", "llm", "summarize", "tree"},
	"summarize":        {"db", "fault", "llm", "tokens", "tree"},
	"llm":              {},
	"llm/llmtest":      {"llm"},
	"transfer":         {"fault", "internal/rawjson", "tree"},
	"tree":             {"chat", "db", "fault", "tokens"},
	"keys":             {"db", "fault"},
	"tokens":           {},
	"fault":            {}, // a leaf: everything may import it
	"internal/rawjson": {},
	"db":               {"fault"},
	"db/embedded":      {"fault"},
	"db/dbtest":        {"db", "db/embedded"},
	"torture":          {"db", "db/embedded", "llm/llmtest"},
}

// testCode are the packages that exist for tests: they may do what tests may,
// and are never linked into the program. cmd/torture and cmd/mutants are
// programs of their own.
var testCode = []string{"db/dbtest", "llm/llmtest", "torture", "cmd/torture", "cmd/mutants"}

// owners says which packages besides cmd/ may import a foreign package, or one
// below it.
var owners = map[string][]string{
	"flag":                         {}, // settings come from cmd/ as values
	"github.com/alecthomas/kong":   {},
	"github.com/jackc/pgx":         {"bench/speed", "db", "db/embedded", "keys", "summarize", "tree"},
	"github.com/labstack/echo":     {"server"},
	"github.com/openai/openai-go":  {"llm"},
	"github.com/pressly/goose":     {"db"},
	"github.com/tiktoken-go":       {},
	"testing":                      {},
	"github.com/testcontainers":    {},
	"github.com/moby":              {},
	"pgregory.net/rapid":           {},
	"go.uber.org/goleak":           {},
	"github.com/stretchr/testify":  {},
	"net/http/httptest":            {},
	"github.com/Shopify/toxiproxy": {},
	"github.com/anishathalye":      {},
}

// global are functions that reach for what belongs to the whole process. Only
// cmd/ may call them; elsewhere settings and the logger are passed in.
var global = map[string][]string{
	"os":  {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv", "Args", "Exit"},
	"log": {"Default", "Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "SetOutput", "SetFlags", "SetPrefix"},
	"log/slog": {"Default", "SetDefault", "With", "Debug", "Info", "Warn", "Error", "Log", "LogAttrs",
		"DebugContext", "InfoContext", "WarnContext", "ErrorContext"},
}

func TestArrows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || slices.Contains([]string{"testdata", "tools", "node_modules"}, base)):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(base) != ".go" || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(name))
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, problem := range problems(pkg, file) {
			t.Errorf("%s: %s", name, problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !seen["db"] || !seen["tree"] {
		t.Errorf("packages found: %v; some are missing", seen)
	}
}

// What a package imports its importers import, too, so this asks the go command
// for all there is in the program.
func TestProgramHasNoTestCode(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "./cmd/coppice").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	unwanted := []string{"testing", "github.com/testcontainers", "github.com/moby", "github.com/stretchr", "pgregory.net/rapid", "github.com/Shopify", "github.com/anishathalye", "github.com/tiktoken-go"}
	for _, pkg := range testCode {
		unwanted = append(unwanted, module+"/"+pkg)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if slices.ContainsFunc(unwanted, func(root string) bool { return within(pkg, root) }) {
			t.Errorf("the program contains %s", pkg)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const (
		echo = `import "github.com/labstack/echo/v4"`
		pgx  = `import "github.com/jackc/pgx/v5"`
		dbs  = `import "github.com/coppice-chat/coppice/db"`
	)
	for _, test := range []struct {
		pkg, source, want string
	}{
		{"tree", dbs, ""},
		{"tree", echo, "may not import github.com/labstack/echo/v4"},
		{"server", echo, ""},
		{"server", pgx, "may not import github.com/jackc/pgx/v5"},
		{"server", dbs, "may not import db"},
		{"db", `import "github.com/coppice-chat/coppice/tree"`, "may not import tree"},
		{"cmd/coppice", echo + "\n" + pgx + "\n" + dbs, ""},
		{"cmd/coppice", `import "github.com/coppice-chat/coppice/db/dbtest"`, "may not import db/dbtest"},
		{"cmd/coppice", `import "github.com/coppice-chat/coppice/torture"`, "may not import torture"},
		{"cmd/torture", `import "github.com/coppice-chat/coppice/torture"`, ""},
		{"db/dbtest", `import "testing"`, ""},
		{"transfer", `import "testing/fstest"`, "may not import testing/fstest"},
		{"elsewhere", `import "fmt"`, "has no line in arrows"},
		{"tree", "import \"os\"\nfunc f() { os.Getenv(\"HOME\") }", "may not use os.Getenv"},
		{"tree", "import sys \"os\"\nvar v = sys.Args", "may not use os.Args"},
		{"tree", "import \"os\"\nfunc f() { os.ReadFile(\"x\") }", ""},
		{"cmd/coppice", "import \"os\"\nfunc f() { os.Getenv(\"HOME\") }", ""},
		{"db/dbtest", "import \"os\"\nfunc f() { os.Getenv(\"HOME\") }", ""},
		{"server", "import \"log/slog\"\nfunc f() { slog.Info(\"x\") }", "may not use log/slog.Info"},
		{"server", "import \"log/slog\"\nfunc F(log *slog.Logger) { log.Info(\"x\", slog.Int(\"a\", 1)) }", ""},
		{"tree", dbs + "\nfunc New(h db.Handle) *Store { return nil }", ""},
		{"tree", dbs + "\nfunc Of(h db.Handle) *Store { return nil }", "shows db.Handle in Of"},
		{"tree", dbs + "\nfunc (s *Store) Node() db.Node { return db.Node{} }", "shows db.Node in Node"},
		{"tree", dbs + "\nfunc (s *store) Node() db.Node { return db.Node{} }", ""},
		{"tree", dbs + "\nfunc f() db.Node { return db.Node{} }", ""},
		{"tree", dbs + "\nfunc F() { db.New(nil) }", ""},
		{"tree", dbs + "\ntype Store struct { queries *db.Queries }", ""},
		{"tree", dbs + "\ntype Store struct { Queries *db.Queries }", "shows db.Queries in Store"},
		{"tree", dbs + "\ntype Store struct { *db.Queries }", "shows db.Queries in Store"},
		{"tree", dbs + "\ntype row db.Node\nvar x db.Node", ""},
		{"tree", dbs + "\nvar X db.Node", "shows db.Node in X"},
		{"tree", dbs + "\ntype Nodes = []db.Node", "shows db.Node in Nodes"},
		{"tree", dbs + "\ntype Reader interface { Read() db.Node }", "shows db.Node in Reader"},
		{"cmd/coppice", dbs + "\nfunc F(h db.Handle) {}", ""},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+test.source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", test.source, err)
		}
		if got := strings.Join(problems(test.pkg, file), "; "); got != test.want {
			t.Errorf("%s: %s\n got %q\nwant %q", test.pkg, test.source, got, test.want)
		}
	}
}

// problems lists what a file of a package does against the rules. It leaves
// the file stripped of all that is not exported.
func problems(pkg string, file *ast.File) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	command := within(pkg, "cmd")
	allowed, known := arrows[pkg]
	if !known && !command {
		report("has no line in arrows")
		return found
	}
	imports := map[string]string{} // by the name they have in the file
	for _, spec := range file.Imports {
		target := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = target
		inside, ours := strings.CutPrefix(target, module+"/")
		switch {
		case !ours && !mayImport(pkg, target):
			report("may not import %s", target)
		case ours && !command && !slices.Contains(allowed, inside), slices.Contains(testCode, inside) && !slices.Contains(testCode, pkg):
			report("may not import %s", inside)
		}
	}
	if command {
		return found
	}
	if !slices.Contains(testCode, pkg) {
		for used := range selectors(file) {
			target := imports[used.pkg]
			if slices.Contains(global[target], used.name) {
				report("may not use %s.%s", target, used.name)
			}
		}
	}
	if within(pkg, "db") {
		return found
	}
	ast.FileExports(file)
	for _, decl := range file.Decls {
		for name, node := range exported(decl) {
			if strings.HasPrefix(name, "New") && (pkg == "tree" || pkg == "keys") {
				continue // the constructors take the database
			}
			for used := range selectors(node) {
				if imports[used.pkg] == module+"/db" {
					report("shows db.%s in %s", used.name, name)
				}
			}
		}
	}
	return found
}

// mayImport tells whether a package may import a foreign one.
func mayImport(pkg, target string) bool {
	for root, by := range owners {
		if within(target, root) {
			return slices.Contains(by, pkg) || slices.Contains(testCode, pkg) ||
				within(pkg, "cmd") && root != "testing"
		}
	}
	return true
}

// within tells whether a package is root or lies below it.
func within(pkg, root string) bool {
	return pkg == root || strings.HasPrefix(pkg, root+"/")
}
