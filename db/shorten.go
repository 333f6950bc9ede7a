//go:build ignore

// Shorten has pgx scan the rows of the queries that sqlc wrote: sqlc names each column of
// each query, and pgx takes the fields of the row's type in their order. Rows of the same
// columns get one type.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	files, err := filepath.Glob("*.sql.go")
	known := map[string]string{}
	for _, path := range files {
		err = errors.Join(err, shorten(path, known))
	}
	if err != nil {
		panic(err)
	}
}

// An edit puts a text in the place of a node.
type edit struct {
	ast.Node
	text string
}

// shorten shortens a file. known are the row types of the files before, by their fields.
func shorten(path string, known map[string]string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	text := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	var edits []edit
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if body := bodyOf(n, text); body != "" {
				edits = append(edits, edit{n.Body, body})
			}
		case *ast.TypeSpec:
			row, ok := n.Type.(*ast.StructType)
			if !ok || !strings.HasSuffix(n.Name.Name, "Row") {
				return true
			}
			var fields []string
			for _, f := range row.Fields.List {
				fields = append(fields, f.Names[0].Name+" "+text(f.Type))
				if f.Names[0].Name == text(f.Type) { // a whole row of a table: embedded, its columns are the row's
					fields[len(fields)-1] = text(f.Type)
				}
			}
			all := strings.Join(fields, "\n")
			switch same := known[all]; {
			case same != "":
				edits = append(edits, edit{row, "= " + same})
			case !strings.ContainsAny(all, " \n"): // and no other column
				edits = append(edits, edit{row, "= " + all})
			default:
				known[all] = n.Name.Name
				edits = append(edits, edit{row, "struct {\n" + all + "\n}"})
			}
		}
		return true
	})
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.Pos(), a.Pos()) })
	for _, e := range edits {
		source = slices.Concat(source[:at(e.Pos())], []byte(e.text), source[at(e.End()):])
	}
	if source, err = format.Source(source); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, source, 0o644)
}

// value is a scan of one column, of which the row has no type.
var value = regexp.MustCompile(`\.Scan\(&\w+\)`)

// bodyOf returns the method's new body, "" where it stays.
func bodyOf(method *ast.FuncDecl, text func(ast.Node) string) string {
	var call *ast.CallExpr
	ast.Inspect(method.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if ok && call == nil && strings.HasPrefix(text(c.Fun), "q.db.") {
			call = c
		}
		return call == nil
	})
	if call == nil {
		return ""
	}
	var args []string
	for _, a := range call.Args {
		args = append(args, text(a))
	}
	sent := func(by string) string { return "q.db." + by + "(" + lines(args) + ")" }
	row, reads := text(method.Type.Results.List[0].Type), "one"
	switch text(call.Fun) {
	case "q.db.Exec":
		if row == "error" {
			return "{\n_, err := " + sent("Exec") + "\nreturn err\n}"
		}
		return "{\nreturn affected(" + sent("Exec") + ")\n}"
	case "q.db.QueryRow":
	case "q.db.Query":
		row, reads = strings.TrimPrefix(row, "[]"), "all"
	default:
		return ""
	}
	if value.MatchString(text(method.Body)) {
		reads += "Value"
	}
	return "{\nreturn " + reads + "[" + row + "](" + sent("Query") + ")\n}"
}

// lines are arguments, a few of them in a line.
func lines(args []string) string {
	var out strings.Builder
	width := 0
	for i, arg := range args {
		if i > 0 {
			out.WriteString(", ")
		}
		if width += len(arg) + 2; width > 120 {
			out.WriteString("\n")
			width = len(arg)
		}
		out.WriteString(arg)
	}
	return out.String()
}
