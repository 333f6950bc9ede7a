package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/transfer"
)

// shownNotes is how many notes of one sort a report lists before it counts the
// rest.
const shownNotes = 5

// imported is what became of a file.
type imported struct {
	File   string
	page   string // URL of the page that shows it; "" for none
	report transfer.Report
	err    error
}

// write prints the report for people: what the file holds, what of it is new,
// and what was not as it should be. An error is not the report's to tell.
func (f imported) write(out *terminal.Console, dryRun, verbose bool) {
	r := f.report
	out.Line("%s  %s", out.Bold(f.File), r.Format)
	out.Line("  %s", f.holds())
	if dryRun {
		out.Line("  dry run: nothing was stored")
	} else {
		out.Line("  %s added, %s already there", terminal.Thousands(r.Added), terminal.Thousands(r.Present))
		if r.Attachments > 0 {
			out.Line("  %s of the attachments added, %s already there", terminal.Thousands(r.Attached), terminal.Thousands(r.Attachments-r.Attached))
		}
	}
	switch {
	case f.page == "" || dryRun || r.First == uuid.Nil:
	case r.Conversations == 1:
		out.Line("  %s/c/%s", f.page, r.First)
	default:
		out.Line("  %s", f.page)
	}
	f.writeNotes(out, verbose)
}

func (f imported) holds() string {
	r := f.report
	messages := terminal.Count(r.Messages, "message")
	if r.LeftOut > 0 {
		messages += fmt.Sprintf(" (%s of %s left out)", terminal.Thousands(r.LeftOut), terminal.Count(r.Nodes-r.Aside, "node"))
	}
	parts := []string{terminal.Count(r.Conversations, "conversation"), messages}
	if r.Summaries > 0 {
		parts = append(parts, terminal.Count(r.Summaries, "summary"))
	}
	if r.Dropped > 0 {
		parts = append(parts, terminal.Count(r.Dropped, "summary")+" left out")
	}
	if r.Attachments > 0 {
		parts = append(parts, terminal.Count(r.Attachments, "attachment"))
	}
	parts = append(parts, terminal.Count(r.BranchPoints, "branch point"), terminal.Count(r.Leaves, "leaf"))
	return strings.Join(parts, ", ")
}

// writeNotes lists the notes by what was done and the sort of thing it was done
// to, in the order in which the sorts came up. What it doesn't list it counts.
func (f imported) writeNotes(out *terminal.Console, verbose bool) {
	type sort struct {
		action transfer.Action
		kind   transfer.Kind
	}
	var sorts []sort
	bySort := map[sort][]transfer.Note{}
	for _, n := range f.report.Notes {
		s := sort{n.Action, n.Kind}
		if bySort[s] == nil {
			sorts = append(sorts, s)
		}
		bySort[s] = append(bySort[s], n)
	}
	for _, s := range sorts {
		notes := bySort[s]
		out.Line("  %s, %s: %s", s.action, s.kind, terminal.Thousands(len(notes)))
		for i, n := range notes {
			if i == shownNotes && !verbose {
				out.Line("    … and %s more (--verbose lists all)", terminal.Thousands(len(notes)-i))
				break
			}
			out.Line("    %s", noteLine(n))
		}
	}
}

// noteLine names the place and says what was found there.
func noteLine(n transfer.Note) string {
	var where []string
	for _, s := range []string{n.Conversation, n.Place} {
		if s != "" {
			where = append(where, terminal.OneLine(s, 60))
		}
	}
	if len(where) == 0 {
		return terminal.OneLine(n.Detail, 500)
	}
	return strings.Join(where, ", ") + ": " + terminal.OneLine(n.Detail, 500)
}

// MarshalJSON gives the report for programs, with every note.
func (f imported) MarshalJSON() ([]byte, error) {
	var failure *string
	if f.err != nil {
		text := explain(f.err)
		failure = &text
	}
	return json.Marshal(struct {
		File string `json:"file"`
		transfer.Report
		Error *string `json:"error"`
	}{f.File, f.report, failure})
}
