package coppice_test

import (
	"go/ast"
	"iter"
	"strings"
)

// A selector is an expression of the form pkg.name, or value.field: the syntax
// is the same, and the imports tell them apart.
type selector struct{ pkg, name string }

func selectors(node ast.Node) iter.Seq[selector] {
	return func(yield func(selector) bool) {
		for n := range ast.Preorder(node) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && !yield(selector{pkg.Name, sel.Sel.Name}) {
				return
			}
		}
	}
}

// exported goes through what a declaration, stripped by [ast.FileExports],
// shows to other packages, by name.
func exported(decl ast.Decl) iter.Seq2[string, ast.Node] {
	return func(yield func(string, ast.Node) bool) {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil && !ast.IsExported(receiver(decl)) {
				return
			}
			yield(decl.Name.Name, decl.Type)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if !yield(spec.Name.Name, spec) {
						return
					}
				case *ast.ValueSpec:
					if !yield(spec.Names[0].Name, spec) {
						return
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(method *ast.FuncDecl) string {
	for n := range ast.Preorder(method.Recv.List[0].Type) {
		if name, ok := n.(*ast.Ident); ok {
			return name.Name
		}
	}
	return ""
}

// usedRooms gives the rooms of a store that a file names: store.Index(), or
// r.Store().Feed().
func usedRooms(file *ast.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || rooms[call.Sel.Name] == nil {
				return true
			}
			of := call.X
			if inner, ok := of.(*ast.CallExpr); ok {
				of = inner.Fun
			}
			name := ""
			switch of := of.(type) {
			case *ast.Ident:
				name = of.Name
			case *ast.SelectorExpr:
				name = of.Sel.Name
			}
			return !strings.EqualFold(name, "store") || yield(call.Sel.Name)
		})
	}
}
