// Package mutants plants faults into the product's source, one at a time, and
// says which test must find each one. A test suite that misses a planted fault
// proves less than it seems to. The faults stand in faults.txt.
package mutants

import (
	"errors"
	"fmt"
	"strings"
)

// A Fault is one change of the source that breaks a promise. In faults.txt it is
// a block of lines, each with a key and its value. Empty lines separate the
// blocks, and lines that begin with # are comments.
//
//	name  what the fault is
//	file  the file that it changes, from the root of the repository
//	in    the beginning of a declaration, at the start of a line; the change is made
//	      inside this declaration
//	old   the text to replace, which stands there exactly once. Several lines of
//	      text are several keys
//	new   the new text; without it the old text is deleted
//	test  a package, and a regular expression of the tests that must fail
type Fault struct {
	name, file, in string
	old, new       string
	pkg, run       string
	line           int // in faults.txt
}

// parse reads faults.txt.
func parse(text string) (faults []Fault, err error) {
	var f *Fault
	var old, replacement []string
	for i, line := range strings.Split(text+"\n", "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line == "" {
			if f != nil {
				f.old, f.new = strings.Join(old, "\n"), strings.Join(replacement, "\n")
				if f.name == "" || f.file == "" || f.in == "" || f.old == f.new || f.run == "" {
					err = errors.Join(err, fmt.Errorf("faults.txt:%d: a fault needs name, file, in, old, a different new, and test", f.line))
				}
				faults = append(faults, *f)
			}
			f, old, replacement = nil, nil, nil
			continue
		}
		if f == nil {
			f = &Fault{line: i + 1}
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
			f.pkg, f.run, _ = strings.Cut(value, " ")
		default:
			err = errors.Join(err, fmt.Errorf("faults.txt:%d: unknown key %q", i+1, key))
		}
	}
	return faults, err
}

// plant returns the source with the fault in it. If the source has changed so that
// the fault has no place, the error says what to change in faults.txt.
func (f Fault) plant(source string) (string, error) {
	if n := strings.Count("\n"+source, "\n"+f.in); n != 1 {
		return "", f.outdated("%d lines of %s begin with\n\t%s", n, f.file, f.in)
	}
	begin := strings.Index("\n"+source, "\n"+f.in)
	closing := "\n}\n"
	switch line, _, _ := strings.Cut(source[begin:], "\n"); {
	case strings.Contains(line, "`"): // a query
		closing = "\n`"
	case strings.HasSuffix(line, "("):
		closing = "\n)\n"
	}
	part := source[begin:]
	if n := strings.Index(part, closing); n >= 0 {
		part = part[:n+len(closing)]
	}
	if n := strings.Count(part, f.old); n != 1 {
		return "", f.outdated("%q of %s has %d times\n\t%s", f.in, f.file, n, strings.ReplaceAll(f.old, "\n", "\n\t"))
	}
	return source[:begin] + strings.Replace(part, f.old, f.new, 1) + source[begin+len(part):], nil
}

// outdated is the error of a fault without a place in the source.
func (f Fault) outdated(format string, args ...any) error {
	return fmt.Errorf("faults.txt:%d: %q is out of date: %s\nIt must be there once. Write the text as it stands now, or plant the fault where the code has moved",
		f.line, f.name, fmt.Sprintf(format, args...))
}
