package prompt

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// The list of files at the end of a summary. A file that was changed isn't told to
// have been read.
const (
	pathsHeading = "\n\n## Files that tools used\n"
	changedMark  = "- changed "
	readMark     = "- read "
)

// CutPaths parts a summary's text from the list of files at its end, which WithPaths
// added. The list has a line for each file; "" for no list.
func CutPaths(summary string) (text, list string) {
	at := strings.LastIndex(summary, pathsHeading) // the text may have one of its own
	if at < 0 {
		return summary, ""
	}
	text, list = summary[:at], summary[at+len(pathsHeading):]
	for line := range strings.SplitSeq(list, "\n") {
		if !strings.HasPrefix(line, changedMark) && !strings.HasPrefix(line, readMark) {
			return summary, ""
		}
	}
	return text, list
}

// WithPaths returns a summary with a list of the files that tools read and changed: by
// the calls of the messages that it folds, and by the list of the summary before. The
// list is in the order of the last use, and has at most an eighth of the target. Where
// that is too little, the files that were only read are left out first, the oldest use
// first.
func WithPaths(summary string, in Input, counter tokens.Counter) string {
	const share = 8
	uses, last := 0, map[string]int{} // of each line, the last of the uses
	use := func(line string) {
		path := strings.TrimPrefix(strings.TrimPrefix(line, readMark), changedMark)
		read, changed := readMark+path, changedMark+path
		if last[changed] > 0 {
			line = changed
		}
		delete(last, read)
		uses++
		last[line] = uses
	}
	if in.Paths != "" {
		for line := range strings.SplitSeq(in.Paths, "\n") {
			use(line)
		}
	}
	failed := map[string]bool{}
	for _, m := range in.Fold {
		if said := Read(m); said.Failed && m.Role == tree.RoleTool {
			failed[said.CallID] = true
		}
	}
	for _, m := range in.Fold {
		for _, call := range chat.Read(m.Body).Calls {
			if !failed[call.ID] {
				pathsOf(call, use)
			}
		}
	}
	room := in.TargetTokens/share - counter.Count(pathsHeading)
	byUse := func(a, b string) int { return cmp.Compare(last[a], last[b]) }
	lines := slices.SortedFunc(maps.Keys(last), byUse)
	var kept []string
	for _, mark := range []string{changedMark, readMark} {
		for _, line := range slices.Backward(lines) {
			if !strings.HasPrefix(line, mark) {
				continue
			}
			if room -= counter.Count(line) + 1; room < 0 {
				break
			}
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return summary
	}
	slices.SortFunc(kept, byUse)
	return summary + pathsHeading + strings.Join(kept, "\n")
}

// pathsOf calls use with a line for each file that a call reads or changes, as far as
// the names of its tool and of its arguments say so.
func pathsOf(call chat.Call, use func(line string)) {
	mark := usageOf(call.Name)
	var arguments struct{ Command string } // of a tool with several
	if json.Unmarshal([]byte(call.Arguments), &arguments) == nil {
		if command := usageOf(arguments.Command); mark != "" && command != "" && !strings.ContainsAny(arguments.Command, " \n") {
			mark = command
		}
	}
	patch := func(text string) {
		for _, file := range patched.FindAllStringSubmatch(text, -1) {
			usePath(changedMark, file[1], use)
		}
	}
	if !json.Valid([]byte(call.Arguments)) {
		patch(call.Arguments)
		return
	}
	var walk func(name string, value json.RawMessage)
	walk = func(name string, value json.RawMessage) {
		var text string
		switch value[0] {
		case '{':
			for _, m := range chat.Members(value) {
				walk(m.Name, m.Value)
			}
		case '[':
			for element := range chat.Elements(value) {
				walk(name, element)
			}
		case '"':
			if json.Unmarshal(value, &text) != nil {
				return
			}
			if mark != "" && pathName.MatchString(name) {
				usePath(mark, text, use)
			}
			patch(text)
		}
	}
	walk("", json.RawMessage(strings.TrimSpace(call.Arguments)))
}

// usePath uses a path that can stand in the list.
func usePath(mark, path string, use func(line string)) {
	const longest = 200 // bytes
	if path = strings.TrimSpace(path); path != "" && len(path) <= longest && Line(path) == path {
		use(mark + path)
	}
}

var (
	// patched matches the line of a patch that names a file.
	patched = regexp.MustCompile(`(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$`)
	// pathName matches an argument that is a file's path.
	pathName = regexp.MustCompile(`(?i)^(?:(?:file|notebook|absolute|relative|target|source|destination|old|new)_?)?(?:path|file|file_?name)s?$|^(?:source|destination|relative_workspace_path)$`)

	nameWord      = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	changingWords = words("write edit multiedit create replace insert patch delete remove move rename update append save modify")
	readingWords  = words("read view open cat show load")
)

// usageOf returns the mark of a tool that changes or reads files, by the words in its
// name; "" for another.
func usageOf(tool string) (mark string) {
	for _, word := range nameWord.FindAllString(tool, -1) {
		switch word = strings.ToLower(word); {
		case changingWords[word]:
			return changedMark
		case readingWords[word]:
			mark = readMark
		}
	}
	return mark
}
