package main

import (
	"fmt"
	"slices"

	"github.com/coppice-chat/coppice/lab/bench/speed"
)

// The tables of what was measured, as Markdown: the same on a terminal and in
// docs/performance-tables.md.

// writePart prints the tables of one part.
func writePart(out *printer, r *speed.Report, part string) {
	if part == "growth" {
		for _, a := range r.Growth {
			writeAxis(out, a)
		}
		return
	}
	for _, c := range r.Parts[part].Comparisons {
		writeComparison(out, c)
	}
	if load := r.Parts[part].Load; load != nil {
		writeLoad(out, load)
	}
	out.Line("The server held %.0f MB at most.", r.MemoryBytes[part]/1e6)
	out.Line("")
}

// writeComparison prints what variants came to.
func writeComparison(out *printer, c speed.Comparison) {
	title := c.Name
	if c.Workers > 1 {
		title = fmt.Sprintf("%s, %d at once", title, c.Workers)
	}
	out.Line("%s", title)
	out.Line("")
	rows := [][]string{{"", "p50 ms", "p99 ms", "a second", "p50 / sql", "a second / sql", "p50 / prepared", "p50 / net/http", "p50 / before", "KB", "allocations", "KB allocated", "CPU ms"}}
	for _, r := range c.Results {
		sql, prepared, bare, before := r.Ratios["sql"], r.Ratios["prepared"], r.Ratios["net/http"], r.Ratios["before"]
		allocs, allocated, cpu := thousands(int(max(r.Allocs, 0))), fmt.Sprintf("%.1f", max(r.AllocBytes, 0)/1000), ""
		switch r.Name {
		case "coppice", "before":
			cpu = fmt.Sprintf("%.2f", max(r.CPU, 0))
		case "net/http": // nobody asks that process
			allocs, allocated = "", ""
		}
		rows = append(rows, []string{
			r.Name, latency(r.P50), latency(r.P99), thousands(int(r.PerSecond + 0.5)),
			spread(sql.P50), spread(sql.PerSecond), spread(prepared.P50), spread(bare.P50), spread(before.P50),
			fmt.Sprintf("%.1f", r.Bytes/1000), allocs, allocated, cpu,
		})
	}
	for _, name := range []string{"before", "net/http"} { // those that weren't measured
		if !slices.ContainsFunc(c.Results, func(r speed.Result) bool { return r.Name == name }) {
			column := slices.Index(rows[0], "p50 / "+name)
			for i := range rows {
				rows[i] = slices.Delete(rows[i], column, column+1)
			}
		}
	}
	out.Table(rows)
	out.Line("")
}

func writeLoad(out *printer, l *speed.Load) {
	out.Line("at %s requests a second, which is half of what is possible, for %.0f s each way:", thousands(int(l.PerSecond)), l.Seconds)
	out.Line("")
	rows := [][]string{{"", "requests", "p50 ms", "p99 ms", "longest ms"}}
	for _, name := range []string{"coppice", "sql", "prepared"} {
		if w, ok := l.Ways[name]; ok {
			rows = append(rows, []string{name, thousands(w.Requests), latency(w.P50), latency(w.P99), latency(w.Max)})
		}
	}
	out.Table(rows)
	out.Line("")
}

// writeAxis prints what growth did to requests, and to the disk.
func writeAxis(out *printer, a speed.Axis) {
	out.Line("%s", a.Name)
	out.Line("")
	head := []string{a.Unit}
	columns := []*speed.Comparison{&a.Context, &a.Append, &a.Transcript, a.LoadAll, a.OneRow}
	for i, name := range []string{"context", "append", "page of a transcript", "context, load all", "context, one row"} {
		if columns[i] != nil {
			head = append(head, name+" p50 ms", "to the smallest")
		}
	}
	rows := [][]string{head}
	smallest := thousands(a.Sizes[0])
	for i, size := range a.Sizes {
		row := []string{thousands(size)}
		for _, c := range columns {
			switch {
			case c == nil:
			case i >= len(c.Results):
				row = append(row, "", "")
			default:
				row = append(row, latency(c.Results[i].P50), spread(c.Results[i].Ratios[smallest].P50))
			}
		}
		rows = append(rows, row)
	}
	out.Table(rows)
	out.Line("")
	if len(a.Storage) > 0 {
		writeStorage(out, a.Storage)
	}
}

// writeStorage prints what a message takes on disk, beside its body.
func writeStorage(out *printer, sizes []speed.Storage) {
	head, bodies, ratio := []string{"bytes a message"}, []string{"its body"}, []string{"all, for each byte of a body"}
	var names []string
	for _, s := range sizes {
		head = append(head, count(s.Messages, "message"))
		bodies = append(bodies, fmt.Sprintf("%.0f", float64(s.Bodies)/float64(s.Messages)))
		ratio = append(ratio, fmt.Sprintf("%.2f", s.Ratio))
		for _, p := range s.Pieces {
			if !slices.Contains(names, p.Name) && p.PerMessage >= 0.5 {
				names = append(names, p.Name)
			}
		}
	}
	rows := [][]string{head, bodies}
	for _, name := range names {
		row := []string{name}
		for _, s := range sizes {
			i := slices.IndexFunc(s.Pieces, func(p speed.Piece) bool { return p.Name == name })
			row = append(row, fmt.Sprintf("%.0f", s.Pieces[i].PerMessage))
		}
		rows = append(rows, row)
	}
	out.Table(append(rows, ratio))
	out.Line("")
}

// writeTargets prints what is promised beside what was measured.
func writeTargets(out *printer, r *speed.Report) {
	rows := [][]string{{"target", "measured", ""}}
	for _, t := range r.Targets() {
		met := "missed"
		if t.Met {
			met = "met"
		}
		rows = append(rows, []string{t.Name, t.Measured, met})
	}
	out.Table(rows)
}

// latency is in milliseconds, with three digits that say something.
func latency(ms float64) string {
	switch {
	case ms < 1:
		return fmt.Sprintf("%.3f", ms)
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return thousands(int(ms + 0.5))
}

// spread is a median with its quartiles; "" where nothing was compared.
func spread(s speed.Spread) string {
	if s.Median == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Low, s.High)
}
