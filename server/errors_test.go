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

	"github.com/coppice-chat/coppice/fault"
)

// TestEveryCodeIsDocumented reads which codes the packages below give from their
// source, and holds that openapi.yaml has those and the server's own, once in
// the list and once in the table, with their status, and no other.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	given := codesBelow(t)
	for code, kind := range kinds {
		given[string(code)] = append(given[string(code)], answers[kind].status)
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

// codesBelow finds the codes that packages give and that can reach a client, with
// the statuses of their kinds: wherever a kind stands before a code.
func codesBelow(t *testing.T) map[string][]int {
	t.Helper()
	// What AddSummary and Import refuse, which have no route, fields that the server
	// checks before, and what PruneLeaf refuses, which no native route calls.
	unreachable := []string{"has_children", "invalid_cutoff", "invalid_summary", "missing_id", "missing_model", "reserved_member"}
	statusOf := map[string]int{}
	for kind, name := range map[fault.Kind]string{
		fault.Invalid: "Invalid", fault.NotFound: "NotFound", fault.Conflict: "Conflict", fault.TooLarge: "TooLarge", fault.Full: "Full",
		fault.Unauthorized: "Unauthorized", fault.TooMany: "TooMany", fault.Unavailable: "Unavailable", fault.Timeout: "Timeout",
		fault.Model: "Model", fault.ModelBusy: "ModelBusy", fault.ModelTimeout: "ModelTimeout",
	} {
		statusOf[name] = answers[kind].status
	}
	codes := map[string][]int{}
	add := func(code, kind string) {
		if statusOf[kind] == 0 {
			t.Errorf("%s is of the kind %s, which has no status", code, kind)
		}
		if !slices.Contains(unreachable, code) {
			codes[code] = append(codes[code], statusOf[kind])
		}
	}
	// pairs looks for a kind and a code side by side, as arguments and in tables.
	pairs := func(list []ast.Expr) {
		for i := range len(list) - 1 {
			kind, ok := list[i].(*ast.SelectorExpr)
			if pkg, is := (*ast.Ident)(nil), false; ok {
				pkg, is = kind.X.(*ast.Ident)
				ok = is && pkg.Name == "fault"
			}
			if !ok {
				continue
			}
			switch code := list[i+1].(type) {
			case *ast.BasicLit:
				add(unquoted(t, code), kind.Sel.Name)
			case *ast.BinaryExpr: // field + "_too_large", of checkText
				for _, field := range []string{"title", "query"} {
					add(field+unquoted(t, code.Y.(*ast.BasicLit)), kind.Sel.Name)
				}
			}
		}
	}
	for _, pkg := range []string{"attach", "chat", "db", "reply", "summarize", "tree", "watch"} {
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		before := len(codes)
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
					pairs(n.Args)
					if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "wrong" { // of package chat's decoder
						add(unquoted(t, n.Args[0].(*ast.BasicLit)), "Invalid")
					}
				case *ast.CompositeLit:
					pairs(n.Elts)
				}
				return true
			})
		}
		if len(codes) == before {
			t.Errorf("no code found in package %s", pkg)
		}
	}
	if len(codes) < 40 {
		t.Fatalf("only %d codes found: %v", len(codes), codes)
	}
	return codes
}

// Every kind has a status. Those that a client can't fix have an answer, too.
func TestEveryKindIsAnswered(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.Invalid, fault.NotFound, fault.Conflict, fault.TooLarge, fault.Full, fault.Unauthorized, fault.TooMany, fault.Unavailable,
		fault.Timeout, fault.Canceled, fault.Permanent, fault.Model, fault.ModelBusy, fault.ModelTimeout, fault.Internal,
	} {
		p := toProblem(fault.New(kind, "", "field", "secret"))
		if p.Status < 400 || !p.Code.Valid() || p.Detail == "" || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s without a code: %+v", kind, p)
		}
		if kind == fault.Permanent || kind == fault.Internal {
			continue
		}
		p = toProblem(fmt.Errorf("wrapped: %w", fault.New(kind, "id_conflict", "id", "Send another.")))
		if p.Status != answers[kind].status || p.Code != CodeIDConflict || p.Detail != "Send another." || *p.Field != "id" {
			t.Errorf("%s with a code: %+v", kind, p)
		}
	}
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
