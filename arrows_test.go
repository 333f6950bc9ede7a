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
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

const module = "github.com/coppice-chat/coppice"

// arrows says which packages of this module a package may import. Those in cmd/
// may import all but test code. A new package needs a line here;
// a line with * is for every package of a folder that has none of its own.
var arrows = map[string][]string{
	"app":                {"access", "attach/pdf", "db", "db/embedded", "db/migrate", "fault", "internal/telemetry", "keys", "llm", "quota", "search", "search/embed", "replica", "reply", "server", "server/anthropic", "server/mcp", "server/oidc", "server/openai", "summarize", "summarize/jobs", "tree", "watch"},
	"internal/check":     {},
	"internal/telemetry": {"llm", "search", "replica", "reply", "tree"},
	"recognize":          {"chat", "fault", "reply", "summarize", "tree"},
	"replica":            {"db", "fault", "tree"},
	"server":             {"access", "chat", "chat/reader", "fault", "internal/telemetry", "keys", "quota", "search", "replica", "reply", "summarize", "transfer", "transfer/format", "tree", "watch", "web"},
	"server/mcp":         {"chat", "chat/reader", "fault", "search", "server", "summarize", "transfer/format", "tree"},
	"server/oidc":        {"access", "fault", "server"},
	"server/anthropic":   {"chat", "chat/reader", "chat/sdk", "fault", "recognize", "reply", "server", "server/anthropic/wire", "summarize", "tree"},
	"server/openai":      {"chat", "chat/reader", "chat/sdk", "fault", "recognize", "reply", "server", "server/openai/wire", "summarize", "transfer/format", "tree"},
	"web":                {},
	"chat":               {"fault"},
	"chat/reader":        {"chat", "fault"},
	"chat/sdk":           {"chat"},
	"search":             {"access", "chat", "fault", "search/embed", "tree"},
	"search/embed":       {"access", "chat", "fault", "llm", "tree"},
	"reply":              {"access", "chat", "fault", "llm", "search", "summarize", "tree"},
	"summarize":          {"access", "chat", "fault", "llm", "summarize/audit", "summarize/digest", "summarize/prompt", "tokens", "tree"},
	"summarize/audit":    {"summarize/digest", "summarize/prompt", "tokens", "tree"},
	"summarize/digest":   {"summarize/prompt", "tokens", "tree"},
	"summarize/jobs":     {"db", "fault", "llm", "search/embed", "summarize", "tree"},
	"summarize/prompt":   {"chat", "tokens", "tree"},
	"llm":                {"chat"},
	"llm/llmtest":        {"llm"},

	"server/anthropic/wire":       {"chat", "chat/reader", "chat/sdk", "fault"},
	"server/openai/wire":          {"chat", "chat/reader", "chat/sdk", "fault"},
	"server/oidc/oidctest":        {},
	"summarize/prompt/prompttest": {"transfer", "tree"},

	"transfer":            {"attach", "chat", "fault", "transfer/format", "transfer/format/*", "transfer/normalize", "tree"},
	"transfer/format":     {"chat", "fault", "tree"},
	"transfer/format/*":   {"chat", "fault", "transfer/format", "transfer/format/messages", "tree"},
	"transfer/formattest": {"chat", "fault", "internal/check", "transfer", "transfer/format", "transfer/format/coppice", "transfer/normalize", "tree"},
	"transfer/normalize":  {"chat", "fault", "transfer/format", "tree"},
	"tree":                {"access", "attach", "chat", "db", "db/citus", "fault", "tokens"},
	"watch":               {"fault", "tree"},
	"attach":              {"fault"},
	"attach/pdf":          {"attach", "fault"},
	"attach/pdf/pdftest":  {},
	"keys":                {"access", "db", "fault"},
	"quota":               {"access", "db", "fault"},
	"tokens":              {},
	"access":              {"fault"},
	"fault":               {}, // a leaf: everything may import it
	"internal/terminal":   {"tree"},
	"db":                  {"fault"},
	"db/embedded":         {"fault"},
	"db/citus":            {"db"},
	"db/migrate":          {"db", "db/citus", "fault"},
	"db/upgrade":          {"db", "db/embedded", "db/migrate", "fault"},
	"db/dbtest":           {"db", "db/embedded", "db/migrate", "internal/check"},
}

// rooms says which packages use a room of tree.Store, besides cmd/ and tests.
var rooms = map[string][]string{
	"Summaries":   {"server", "server/openai", "summarize"},
	"Attachments": {"recognize", "server", "server/openai", "summarize", "transfer"},
	"Histories":   {"recognize", "server/openai"},
	"Shares":      {"server"},
	"Admin":       {"app", "replica", "server"},
	"Index":       {"search", "search/embed"},
	"Replies":     {"reply", "server/openai"},
	"Feed":        {"search", "summarize/jobs", "watch"},
}

// testCode are the packages that exist for tests: they may do what tests may,
// and are never linked into the program.
var testCode = []string{"attach/pdf/pdftest", "db/dbtest", "internal/check", "llm/llmtest", "server/oidc/oidctest", "summarize/prompt/prompttest", "transfer/formattest"}

// lab is the folder of benchmarks and attacks, a module of its own. It knows the
// product, and nothing of the product knows it.
const lab = "lab"

// owners says which packages besides cmd/ may import a foreign package, or one
// below it.
var owners = map[string][]string{
	"flag":                            {}, // settings come from cmd/ as values
	"github.com/alecthomas/kong":      {},
	"github.com/jackc/pgx":            {"app", "db", "db/citus", "db/embedded", "db/migrate", "db/upgrade", "internal/telemetry", "keys", "quota", "replica", "summarize/jobs", "tree"},
	"github.com/labstack/echo":        {"server"},
	"github.com/openai/openai-go":     {"llm"},
	"github.com/coder/websocket":      {"server/openai"},
	"github.com/modelcontextprotocol": {"server/mcp"},
	"github.com/coreos/go-oidc":       {"server/oidc"},
	"golang.org/x/oauth2":             {"server/oidc"},
	"github.com/google/jsonschema-go": {"server/mcp"},
	"github.com/pressly/goose":        {"db/migrate"},
	"github.com/riverqueue/river":     {"db/migrate", "summarize/jobs"},
	"github.com/klippa-app/go-pdfium": {"attach/pdf"},
	"github.com/tetratelabs/wazero":   {"attach/pdf"},
	"github.com/tiktoken-go":          {},
	"testing":                         {},
	"github.com/testcontainers":       {},
	"pgregory.net/rapid":              {},
	"go.uber.org/goleak":              {},
	"github.com/stretchr/testify":     {},
	"net/http/httptest":               {},
}

// onlyFiles says which file alone names a foreign package, so that its successor
// is a change of that file.
var onlyFiles = map[string]string{"github.com/labstack/echo": "server/router.go"}

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
		case entry.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || slices.Contains([]string{"testdata", "tools", lab, "node_modules"}, base)):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(base) != ".go":
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(name))
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		check.That(t, !importsLab(file),
			"%s: may not import %s, which is a module of its own: move what needs it there", name, lab)
		if strings.HasSuffix(name, "_test.go") {
			return nil // may import all else
		}
		seen[pkg] = true
		for _, spec := range file.Imports {
			for target, only := range onlyFiles {
				check.That(t, !within(strings.Trim(spec.Path.Value, `"`), target) || filepath.ToSlash(name) == only,
					"%s: only %s may import %s", name, only, target)
			}
		}
		for _, problem := range problems(pkg, file) {
			t.Errorf("%s: %s", name, problem)
		}
		return nil
	})
	check.NoError(t, err)
	check.That(t, seen["db"] && seen["tree"], "packages found: %v; some are missing", seen)
}

func importsLab(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		return within(strings.Trim(spec.Path.Value, `"`), module+"/"+lab)
	})
}

// The go command is asked for the whole program: importers import what a package imports.
func TestProgramHasNoTestCode(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "./cmd/coppice").Output()
	check.Need(t, err == nil, "go list: %v", err)
	unwanted := []string{"testing", "github.com/testcontainers", "github.com/moby", "github.com/stretchr", "pgregory.net/rapid", "github.com/tiktoken-go"}
	for _, pkg := range testCode {
		unwanted = append(unwanted, module+"/"+pkg)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		check.That(t, !slices.ContainsFunc(unwanted, func(root string) bool { return within(pkg, root) }),
			"the program contains %s", pkg)
	}
}

// A program that only stores conversations carries no migrations and no jobs.
func TestTreeIsLight(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "./tree").Output()
	check.Need(t, err == nil, "go list: %v", err)
	for pkg := range strings.FieldsSeq(string(out)) {
		for _, root := range []string{"github.com/pressly/goose", "github.com/riverqueue", module + "/db/migrate"} {
			check.That(t, !within(pkg, root), "package tree needs %s", pkg)
		}
	}
}

// problems lists what a file of a package does against the rules. It leaves
// the file stripped of all that is not exported.
func problems(pkg string, file *ast.File) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	command := within(pkg, "cmd")
	allowed, known := arrows[pkg]
	if !known {
		allowed, known = arrows[path.Dir(pkg)+"/*"]
	}
	if !known && !command {
		report("has no line in arrows")
		return found
	}
	imports := map[string]string{} // by the name they have in the file
	for _, spec := range file.Imports {
		target := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(majorVersion.ReplaceAllString(target, ""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = target
		inside, ours := strings.CutPrefix(target, module+"/")
		switch {
		case !ours && !mayImport(pkg, target):
			report("may not import %s", target)
		case ours && !command && !slices.Contains(allowed, inside) && !slices.Contains(allowed, path.Dir(inside)+"/*"), slices.Contains(testCode, inside) && !slices.Contains(testCode, pkg):
			report("may not import %s", inside)
		}
	}
	if command {
		return found
	}
	if !slices.Contains(testCode, pkg) {
		for room := range usedRooms(file) {
			if !slices.Contains(rooms[room], pkg) && pkg != "tree" {
				report("may not use the room %s of tree.Store", room)
			}
		}
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
			if strings.HasPrefix(name, "New") && slices.Contains([]string{"internal/telemetry", "keys", "quota", "replica", "summarize/jobs", "tree"}, pkg) {
				continue // the constructors take the database, or make what it is given
			}
			for used := range selectors(node) {
				if target := imports[used.pkg]; target == module+"/db" || within(target, "github.com/jackc/pgx") {
					report("shows %s.%s in %s", used.pkg, used.name, name)
				}
			}
		}
	}
	return found
}

// majorVersion ends the path of a module, and isn't the name of its package.
var majorVersion = regexp.MustCompile(`/v\d+$`)

// mayImport tells whether a package may import a foreign one.
func mayImport(pkg, target string) bool {
	for root, by := range owners {
		if within(target, root) {
			return slices.Contains(by, pkg) || slices.Contains(testCode, pkg) ||
				within(pkg, "cmd") && root != "testing" && root != "github.com/riverqueue/river"
		}
	}
	return true
}

// within tells whether a package is root or lies below it.
func within(pkg, root string) bool {
	return pkg == root || strings.HasPrefix(pkg, root+"/")
}
