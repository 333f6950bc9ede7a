package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/lab/bench/plot"
	"github.com/coppice-chat/coppice/lab/bench/speed"
)

type benchAllCommand struct {
	speedFlags
	Out string `type:"existingdir" placeholder:"DIR" help:"Folder of the documentation: the tables go into its performance.md and performance-tables.md, between the comments that name them, and the plots into images/."`
}

func (cmd *benchAllCommand) Run(ctx context.Context, out *printer) error {
	if cmd.Out != "" { // before a long run, rather than after it
		if err := insertTables(cmd.Out, nil); err != nil {
			return err
		}
	}
	report, err := cmd.measure(ctx, out, nil, speed.Parts()...)
	if err != nil && (report == nil || !slices.ContainsFunc(speed.Parts(), report.Has)) {
		return err
	}
	return errors.Join(err, cmd.write(out, report)) // an hour's figures, also where the rest failed
}

func (cmd *benchAllCommand) write(out *printer, report *speed.Report) error {
	if cmd.Out != "" {
		if err := writePlots(filepath.Join(cmd.Out, "images"), report); err != nil {
			return err
		}
		if err := insertTables(cmd.Out, report); err != nil {
			return err
		}
	}
	if cmd.JSON {
		return out.JSON(report)
	}
	for _, section := range tableSections() {
		if !measured(report, section) {
			continue
		}
		if section != "machine" && section != "targets" {
			out.Line("%s", strings.ToUpper(section))
			out.Line("")
		}
		writeSection(out, report, section)
	}
	return nil
}

// measured tells whether there is anything to say in a section.
func measured(r *speed.Report, section string) bool {
	return section == "machine" || section == "targets" || r.Has(section)
}

// tableSections are the sections of tables that the pages have places for.
func tableSections() []string { return append([]string{"machine", "targets"}, speed.Parts()...) }

func writeSection(out *printer, r *speed.Report, section string) {
	switch section {
	case "machine":
		m := r.Machine
		out.Line("%s of %s, %s, Postgres %s with fsync %s and shared_buffers of %s. The load was %s over 1, 5 and 15 minutes when the run began, and what took part is on the same machine.",
			count(m.CPUs, "core"), cmp.Or(m.CPU, "an unknown kind"), m.OS+", "+m.Go, m.Postgres, m.Fsync, m.SharedBuffers, cmp.Or(m.Load, "an unknown kind"))
		out.Line("")
	case "targets":
		writeTargets(out, r)
		out.Line("")
	default:
		writePart(out, r, section)
	}
}

// pages are the files of the documentation that have places for tables.
var pages = []string{"performance.md", "performance-tables.md"}

// insertTables puts the report's tables between the comments that name them, on
// whichever page has these, and leaves the tables of what was not measured. With
// no report it only looks whether every section has a place.
func insertTables(docs string, r *speed.Report) error {
	texts := make([][]byte, len(pages))
	for i, page := range pages {
		text, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			return err
		}
		texts[i] = text
	}
	for _, section := range tableSections() {
		begin, end := []byte("<!-- bench "+section+" -->\n"), []byte("<!-- end -->")
		i := slices.IndexFunc(texts, func(text []byte) bool {
			_, rest, ok := bytes.Cut(text, begin)
			return ok && bytes.Contains(rest, end)
		})
		if i < 0 {
			return fmt.Errorf("%s has no place for the tables of %s: in %s, write the line %q where they go, and %q after it",
				docs, section, strings.Join(pages, " or "), bytes.TrimSpace(begin), end)
		}
		if r == nil || !measured(r, section) {
			continue
		}
		before, rest, _ := bytes.Cut(texts[i], begin)
		_, after, _ := bytes.Cut(rest, end)
		var tables bytes.Buffer
		out := newPrinter(&tables, nil)
		if section == "growth" {
			for _, a := range r.Growth {
				out.Line("![Latency by the %s](images/%s.svg)", a.Name, a.File())
				out.Line("")
			}
		}
		writeSection(out, r, section)
		if err := out.Flush(); err != nil {
			return err
		}
		texts[i] = bytes.Join([][]byte{before, begin, []byte("\n"), bytes.TrimRight(tables.Bytes(), "\n"), []byte("\n\n"), end, after}, nil)
	}
	if r == nil {
		return nil
	}
	for i, page := range pages {
		if err := os.WriteFile(filepath.Join(docs, page), texts[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writePlots draws each axis of growth.
func writePlots(dir string, r *speed.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, a := range r.Growth {
		chart := plot.Chart{Title: "Latency by the " + a.Name, X: a.Unit, Y: "median latency, ms"}
		for _, s := range []struct {
			name   string
			of     *speed.Comparison
			dashed bool
		}{
			{"context", &a.Context, false}, {"append", &a.Append, false}, {"page of a transcript", &a.Transcript, false},
			{"context, load all", a.LoadAll, true}, {"context, one row", a.OneRow, true},
		} {
			if s.of == nil {
				continue
			}
			line := plot.Series{Name: s.name, Dashed: s.dashed}
			for i, result := range s.of.Results {
				line.X = append(line.X, float64(a.Sizes[i]))
				line.Y = append(line.Y, result.P50)
			}
			chart.Series = append(chart.Series, line)
		}
		svg, err := chart.SVG()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, a.File()+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
