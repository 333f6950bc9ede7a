// Package mutants plants faults into a copy of the product's source, one at a
// time, and runs the tests that must find each. A test suite that misses a
// planted fault proves less than it seems to.
//
// The faults stand in the folder faults, in lists that name files and packages
// from the root of the repository.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Fault is one change of the source that breaks a promise. In the lists it is
// a block of lines, each a key and its value; blocks are parted by empty lines,
// and lines that begin with # are comments.
//
//	name     what to call it
//	file     the file that it changes
//	in       a text that begins a declaration at the start of a line: the change
//	         is made between there and the declaration's end. Optional: without
//	         it the change is made anywhere in the file
//	old      the text to replace, which must stand there exactly once. Several
//	         lines of it are several keys
//	new      what to put in its place; none deletes it
//	test     a package, and a regular expression of the tests that must fail.
//	         Several must all fail
//	torture  how the torture finds it; a fault without this key isn't its matter
type Fault struct {
	name, file, in string
	old, new       string
	tests          []suite
	torture        string
	where          string // the fault's own file and line
}

// A suite is some tests of one package.
type suite struct{ pkg, run string }

func (s suite) String() string { return s.pkg + " " + s.run }

// String is a line of a listing.
func (f Fault) String() string { return fmt.Sprintf("%-45s %-30s %s", f.name, f.file, f.tests) }

// folder is where the lists are, from the repository's root.
const folder = "lab/mutants/faults"

// Load reads every list of the repository at root, and returns the faults whose
// name or file matches.
func Load(root string, only *regexp.Regexp) ([]Fault, error) {
	faults, err := load(root)
	return slices.DeleteFunc(faults, func(f Fault) bool { return !only.MatchString(f.name) && !only.MatchString(f.file) }), err
}

// load reads every list of the repository at root.
func load(root string) (faults []Fault, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.txt"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no list of faults in %s", root, folder)
	}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		parsed, parseErr := parse(path.Join(folder, filepath.Base(file)), string(text))
		faults = append(faults, parsed...)
		err = errors.Join(err, readErr, parseErr)
	}
	names := map[string]string{}
	for _, f := range faults {
		if other, twice := names[f.name]; twice {
			err = errors.Join(err, fmt.Errorf("%s: the name %s is taken at %s", f.where, f.name, other))
		}
		names[f.name] = f.where
	}
	return faults, err
}

func parse(file, text string) (faults []Fault, err error) {
	var f *Fault
	var old, replacement []string
	end := func() {
		if f == nil {
			return
		}
		f.old, f.new = strings.Join(old, "\n"), strings.Join(replacement, "\n")
		if f.name == "" || f.file == "" || f.old == "" || f.old == f.new || len(f.tests) == 0 {
			err = errors.Join(err, fmt.Errorf("%s: a fault needs name, file, old, a new that differs, and test", f.where))
		}
		faults = append(faults, *f)
		f, old, replacement = nil, nil, nil
	}
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.TrimSpace(line) == "" {
			end()
			continue
		}
		if f == nil {
			f = &Fault{where: fmt.Sprintf("%s:%d", file, i+1)}
		}
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "name":
			f.name = value
		case "file":
			f.file = value
		case "in":
			f.in = value
		case "old":
			old = append(old, value)
		case "new":
			replacement = append(replacement, value)
		case "test":
			pkg, run, ok := strings.Cut(value, " ")
			if !ok {
				err = errors.Join(err, fmt.Errorf("%s:%d: a test is a package and a regular expression", file, i+1))
			}
			f.tests = append(f.tests, suite{pkg, run})
		case "torture":
			f.torture = value
		default:
			err = errors.Join(err, fmt.Errorf("%s:%d: the key %q is none of name, file, in, old, new, test, torture", file, i+1, key))
		}
	}
	end()
	return faults, err
}

// pkg is the package that a fault is planted into.
func (f Fault) pkg() string { return path.Dir(f.file) }

// plant gives the source with the fault in it. Where the source has changed so
// that the fault has no place, the error says how to mend the list.
func (f Fault) plant(source string) (string, error) {
	begin, end := 0, len(source)
	if f.in != "" {
		switch n := strings.Count("\n"+source, "\n"+f.in); n {
		case 1:
			begin = strings.Index("\n"+source, "\n"+f.in)
		default:
			return "", f.outdated("%d lines of %s begin with\n\t%s\nwhere one should", n, f.file, f.in)
		}
		closing := "\n}"
		switch line, _, _ := strings.Cut(source[begin:], "\n"); {
		case strings.Contains(line, "`"): // a query
			closing = "\n`"
		case strings.HasSuffix(line, "("):
			closing = "\n)"
		}
		if n := strings.Index(source[begin:], closing); n >= 0 {
			end = begin + n + len(closing)
		}
	}
	part := source[begin:end]
	if n := strings.Count(part, f.old); n != 1 {
		where := f.file
		if f.in != "" {
			where += ", in " + f.in
		}
		err := f.outdated("%s has %d times, where it should have once,\n\t%s", where, n, strings.ReplaceAll(f.old, "\n", "\n\t"))
		if n == 0 && f.in != "" && strings.Count(source, f.old) == 1 {
			err = fmt.Errorf("%w\nThe text stands once in the file: mend or drop \"in\"", err)
		}
		return "", err
	}
	return source[:begin] + strings.Replace(part, f.old, f.new, 1) + source[end:], nil
}

// outdated is the error of a fault that the source has left behind.
func (f Fault) outdated(format string, args ...any) error {
	return fmt.Errorf("%s: the fault %s is out of date: "+format+
		"\nThe code has changed since the fault was written. Give it the text as it stands now; where the code is gone, plant the fault where its work is done now, or delete the block",
		slices.Concat([]any{f.where, f.name}, args)...)
}
