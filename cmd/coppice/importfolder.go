package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/internal/terminal"
)

// importEndings are those of files that are looked at in a folder: the formats',
// archives, and either of them packed by gzip.
var importEndings = []string{".json", ".jsonl", ".ndjson", ".traj", ".zip", ".gz"}

// A folder is one that was named among the files to import. Its subfolders aren't
// looked into.
type folder struct {
	path  string
	files []string // to import, by name
	left  []leftOut
}

// leftOut is what was left out of a folder for one reason.
type leftOut struct {
	one, many, why string
	names          []string
}

// Of what is left out of a folder.
const (
	leftFolders = iota
	leftHidden
	leftEndings
	leftSpecial
	leftFormats
)

// openFolder lists a folder's files; it is nil where the path is no folder.
func openFolder(path string) (*folder, error) {
	if path == "-" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return nil, nil // to open it as a file will tell what is wrong
	}
	entries, err := os.ReadDir(path) // by name
	if err != nil {
		return nil, cmp.Or(errors.Unwrap(err), err)
	}
	f := &folder{path: path, left: []leftOut{
		leftFolders: {"folder", "folders", "only named folders are read", nil},
		leftHidden:  {"hidden file", "hidden files", "", nil},
		leftEndings: {"file", "files", "endings that are read: " + strings.Join(importEndings, " "), nil},
		leftSpecial: {"pipe, socket or device", "pipes, sockets and devices", "name one that is to be read", nil},
		leftFormats: {"file", "files", "no format that is read here", nil},
	}}
	for _, entry := range entries {
		name := entry.Name()
		file := filepath.Join(path, name)
		info, err := os.Stat(file) // of what a link leads to
		switch {
		case strings.HasPrefix(name, "."):
			f.leave(leftHidden, name)
		case err == nil && info.IsDir():
			f.leave(leftFolders, name)
		case !slices.Contains(importEndings, strings.ToLower(filepath.Ext(name))):
			f.leave(leftEndings, name)
		case err == nil && !info.Mode().IsRegular(): // to read it may wait for ever
			f.leave(leftSpecial, name)
		default:
			f.files = append(f.files, file)
		}
	}
	return f, nil
}

// leave notes that something is left out.
func (f *folder) leave(reason int, name string) {
	f.left[reason].names = append(f.left[reason].names, name)
}

// remark says what was left out. It is an error if that is all.
func (f *folder) remark(out *terminal.Console) error {
	for _, l := range f.left {
		if len(l.names) == 0 {
			continue
		}
		names := strings.Join(l.names[:min(len(l.names), shownNotes)], ", ")
		if more := len(l.names) - shownNotes; more > 0 {
			names += fmt.Sprintf(" and %s more", terminal.Thousands(more))
		}
		number := "1 " + l.one
		if len(l.names) > 1 {
			number = terminal.Thousands(len(l.names)) + " " + l.many
		}
		why := ""
		if l.why != "" {
			why = " (" + l.why + ")"
		}
		out.Remark("%s: %s left out%s: %s", f.path, number, why, terminal.OneLine(names, 500))
	}
	if len(f.files) == len(f.left[leftFormats].names) {
		return errors.New("no file in this folder is an export that can be read here")
	}
	return nil
}
