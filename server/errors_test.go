package server

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryCodeIsDocumented reads which codes package tree gives from its
// source, and holds that openapi.yaml has those and the server's own, once in
// the list and once in the table, with their status, and no other.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	given := treeCodes(t)
	for code, status := range statuses {
		given[string(code)] = append(given[string(code)], status)
	}
	row := regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| .+ \\|$")
	table := map[string]int{}
	for _, m := range row.FindAllSubmatch(Spec, -1) {
		table[string(m[1])], _ = strconv.Atoi(string(m[2]))
	}
	for code, statuses := range given {
		if !Code(code).Valid() {
			t.Errorf("openapi.yaml doesn't list %s", code)
		}
		if !slices.Contains(statuses, table[code]) {
			t.Errorf("openapi.yaml's table says %d of %s, and it is %v", table[code], code, statuses)
		}
	}
	for code := range table {
		if given[code] == nil {
			t.Errorf("openapi.yaml's table has %s, which nothing gives", code)
		}
	}
	if n := bytes.Count(Spec[bytes.LastIndex(Spec, []byte("      enum:\n")):], []byte("\n        - ")); n != len(table) {
		t.Errorf("openapi.yaml lists %d codes, and its table has %d", n, len(table))
	}
}

// treeCodes finds the codes of packages tree and chat that can reach a client,
// with the statuses of their kinds. All of chat's are invalid input.
func treeCodes(t *testing.T) map[string][]int {
	t.Helper()
	// What AddSummary and Import refuse, which have no route, and fields that
	// the server checks before.
	unreachable := []string{"invalid_cutoff", "invalid_summary", "missing_id", "missing_model", "reserved_member"}
	statusOf := map[string]int{"invalid": 400, "tooLarge": 413, "conflict": 409, "ErrNotFound": 404, "ErrConflict": 409, "ErrInvalid": 400, "ErrTooLarge": 413, "ErrLimit": 403, "ErrTimeout": 503}
	files, err := filepath.Glob("../tree/*.go")
	if err != nil {
		t.Fatal(err)
	}
	chat, err := filepath.Glob("../chat/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, chat...)
	codes := map[string][]int{}
	add := func(code, kind string) {
		if !slices.Contains(unreachable, code) {
			codes[code] = append(codes[code], statusOf[kind])
		}
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "wrong" {
					add(unquoted(t, n.Args[0].(*ast.BasicLit)), "invalid")
				}
				name, ok := n.Fun.(*ast.Ident)
				if !ok || name.Name != "invalid" && name.Name != "tooLarge" {
					break
				}
				switch arg := n.Args[0].(type) {
				case *ast.BasicLit:
					add(unquoted(t, arg), name.Name)
				case *ast.BinaryExpr: // field + "_too_large", of checkText
					for _, field := range []string{"title", "query"} {
						add(field+unquoted(t, arg.Y.(*ast.BasicLit)), name.Name)
					}
				}
			case *ast.CompositeLit:
				code, kind := "", "invalid"
				for _, e := range n.Elts {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					switch fmt.Sprint(kv.Key) {
					case "Code":
						if lit, ok := kv.Value.(*ast.BasicLit); ok {
							code = unquoted(t, lit)
						}
					case "Kind":
						kind = fmt.Sprint(kv.Value)
					}
				}
				if code != "" {
					add(code, kind)
				}
			}
			return true
		})
	}
	if len(codes) < 20 {
		t.Fatalf("only %d codes found in package tree: %v", len(codes), codes)
	}
	return codes
}

func unquoted(t *testing.T, lit *ast.BasicLit) string {
	t.Helper()
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTitles(t *testing.T) {
	t.Parallel()
	for code, want := range map[Code]string{
		CodeParentNotFound: "Parent not found", CodeInvalidJSON: "Invalid JSON", CodeInvalidID: "Invalid ID", CodeIDConflict: "ID conflict",
		CodeInvalidUTF8: "Invalid UTF-8", CodeMissingToolCallID: "Missing tool call ID",
	} {
		if got := titleOf(code); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
}
