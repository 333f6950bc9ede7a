package mutants

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The list must not rot: every fault has its place in the source, leaves a file
// that parses, and names tests that are there. Whether the tests find it, only
// a run of the program tells.
func TestEveryFaultHasItsPlace(t *testing.T) {
	t.Parallel()
	faults, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) < 51 {
		t.Errorf("the list has %d faults; it had 51 and more", len(faults))
	}
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join("../..", f.file))
		if err != nil {
			t.Errorf("%s: %s: %v", f.where, f.name, err)
			continue
		}
		planted, err := f.plant(string(source))
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.HasSuffix(f.file, ".go") {
			if _, err := parser.ParseFile(token.NewFileSet(), f.file, planted, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: with the fault %s planted, the file doesn't parse: %v", f.where, f.name, err)
			}
		}
		for _, s := range f.tests {
			if !hasTest(t, s) {
				t.Errorf("%s: the fault %s is to be found by %s, and there is no such test", f.where, f.name, s)
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// hasTest tells whether every alternative of a suite matches a test of its
// package.
func hasTest(t *testing.T, s suite) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", s.pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		return false
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	for alternative := range strings.SplitSeq(s.run, "|") {
		top, _, _ := strings.Cut(alternative, "/") // what follows names a subtest
		if !slices.ContainsFunc(names, regexp.MustCompile(top).MatchString) {
			return false
		}
	}
	return true
}

// A fault that the source has left behind is refused with what to do about it.
func TestPlant(t *testing.T) {
	t.Parallel()
	const source = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n\treturn 2\n}\n"
	for _, test := range []struct{ in, old, want, problem string }{
		{"", "return 2", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n\tX\n}\n", ""},
		{"func a(", "return 1", "func a() {\n\tX\n}\n\nfunc b() {\n\treturn 1\n\treturn 2\n}\n", ""},
		{"func b(", "return 1", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\tX\n\treturn 2\n}\n", ""},
		{"", "return 1", "", "has 2 times"},
		{"", "return 3", "", "has 0 times"},
		{"func a(", "return 2", "", `mend or drop "in"`},
		{"func c(", "return 2", "", "0 lines of x.go begin with"},
	} {
		f := Fault{name: "n", file: "x.go", in: test.in, old: test.old, new: "X", where: "list.txt:1"}
		got, err := f.plant(source)
		switch {
		case test.problem == "" && (err != nil || got != test.want):
			t.Errorf("%q in %q: %q, %v", test.old, test.in, got, err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), "list.txt:1")):
			t.Errorf("%q in %q: %v, want %q", test.old, test.in, err, test.problem)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	faults, err := parse("list.txt", "# a comment\nname a b\nfile x.go\nold one\nold \ttwo\nnew three\ntest ./x TestA|TestB\ntest . TestC\ntorture it shows\n\nname d\nfile y.go\nold z\ntest ./y TestY\n")
	if err != nil || len(faults) != 2 {
		t.Fatalf("%d faults, %v", len(faults), err)
	}
	if f := faults[0]; f.name != "a b" || f.old != "one\n\ttwo" || f.new != "three" || len(f.tests) != 2 || f.tests[0] != (suite{"./x", "TestA|TestB"}) || f.torture != "it shows" {
		t.Errorf("%+v", f)
	}
	if f := faults[1]; f.new != "" || f.where != "list.txt:11" {
		t.Errorf("%+v", f)
	}
	for _, bad := range []string{"name x\n", "mane x\n", "name x\nfile y\nold z\nnew z\ntest a b\n", "name x\nfile y\nold z\ntest a\n"} {
		if _, err := parse("list.txt", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
