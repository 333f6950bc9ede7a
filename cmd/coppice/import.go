package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/transfer"
)

type importCommand struct {
	dataFlags
	outputFlags
	Files     []string `arg:"" name:"file" help:"Files to import, zip archives as they were exported included, or folders of them; - is standard input."`
	Format    string   `enum:"auto, ${formats}" default:"auto" placeholder:"FORMAT" help:"${enum}. By default the content tells."`
	Summaries string   `enum:"keep, drop" default:"keep" placeholder:"keep|drop" help:"Keep the summaries of a file of Coppice's own, marked as imported, or drop them (${default}): contexts are then made of the messages."`
	DryRun    bool     `help:"Read, check and report, but store nothing. Needs no database."`
	Verbose   bool     `short:"v" help:"List each thing repaired or left out."`
}

func (cmd *importCommand) Help() string {
	return `Importing a file again adds nothing, and importing a later export of the same chats adds what is new. A file comes in as far as it is sound; the report names what was repaired or left out.`
}

func (cmd *importCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if cmd.DryRun {
		return cmd.importAll(ctx, &imports{out: out, list: jsonList{w: out}})
	}
	return cmd.withServer(ctx, out, logs, alone{begins: true}, func(c *client) error {
		return cmd.importAll(ctx, &imports{out: out, list: jsonList{w: out}, client: c})
	})
}

// imports are what became of the files until now.
type imports struct {
	out      *terminal.Console
	client   *client // nil for a dry run
	list     jsonList
	failures []string
}

func (im *imports) failed(path string, err error) {
	im.failures = append(im.failures, path+": "+explain(err))
}

// importAll imports one file after the other, those of a folder by their names.
// One that fails doesn't stop the rest.
func (cmd *importCommand) importAll(ctx context.Context, im *imports) error {
	for _, path := range cmd.Files {
		f, err := openFolder(path)
		if err != nil {
			im.failed(path, err)
			continue
		}
		if f == nil {
			err = cmd.importOne(ctx, im, path, nil)
		} else {
			err = cmd.importFolder(ctx, im, f)
		}
		if err != nil {
			return err
		}
	}
	if cmd.JSON {
		if err := im.list.end(""); err != nil {
			return err
		}
	}
	if len(im.failures) > 0 {
		return errors.New(strings.Join(im.failures, "\ncoppice: "))
	}
	return nil
}

// importFolder imports the files of a folder, and says what of it was left out.
func (cmd *importCommand) importFolder(ctx context.Context, im *imports, f *folder) error {
	for _, path := range f.files {
		if err := cmd.importOne(ctx, im, path, f); err != nil {
			return err
		}
	}
	if err := im.out.Flush(); err != nil {
		return err
	}
	if err := f.remark(im.out); err != nil {
		im.failed(f.path, err)
	}
	return nil
}

// importOne imports a file, which was named or found in a folder. One that was found
// and is no export is left out. The error is that of writing the report.
func (cmd *importCommand) importOne(ctx context.Context, im *imports, path string, in *folder) error {
	file := imported{File: path}
	file.report, file.err = cmd.importFile(ctx, im.out, im.client, path)
	if in != nil && file.err != nil && fault.Of(file.err).Code == transfer.CodeFormat {
		in.leave(leftFormats, filepath.Base(path))
		return nil
	}
	if r := file.report; file.err == nil && r.Conversations == 0 && len(r.Notes) > 0 {
		file.err = errors.New("nothing in this file could be imported")
	}
	switch {
	case cmd.JSON:
		if err := im.list.add(file); err != nil {
			return err
		}
	case file.report.Format != "":
		if im.client != nil && im.client.catchUp == nil { // a server is there, with its page
			file.page = im.client.base
		}
		file.write(im.out, cmd.DryRun, cmd.Verbose)
		if err := im.out.Flush(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if file.err != nil {
		im.failed(path, file.err)
	}
	return nil
}

func (cmd *importCommand) importFile(ctx context.Context, out *terminal.Console, c *client, path string) (report transfer.Report, err error) {
	var in io.Reader = os.Stdin
	name, size := "standard input", int64(-1)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return report, errors.Unwrap(err) // who reports it names the file
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return report, err
		}
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		in, name = f, path
	} else {
		in = interruptible(ctx, in)
	}
	progress := out.Progress(name, size)
	defer progress.End()
	format := cmd.Format
	if format == "auto" {
		format = ""
	}
	if c == nil {
		return transfer.Import(ctx, nil, in, transfer.Options{TenantID: cmd.Tenant, DryRun: true, Progress: progress.Read, Format: format, DropSummaries: cmd.Summaries == "drop"})
	}
	query := url.Values{"summaries": {cmd.Summaries}}
	if format != "" {
		query.Set("format", format)
	}
	answer, err := c.do(ctx, http.MethodPost, "/v1/imports", query, &progressReader{in, progress.Read}, "application/octet-stream")
	if err != nil {
		return report, err
	}
	defer answer.Body.Close()
	var got struct {
		transfer.Report
		FirstID uuid.UUID `json:"first_conversation_id"`
	}
	err = c.read(answer, &got)
	got.First = got.FirstID
	return got.Report, err
}

// interruptible gives what a reader reads until ctx ends, also amid a read: who sends it
// waits for that.
func interruptible(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	return r
}

// A progressReader tells how much was read.
type progressReader struct {
	io.Reader
	read func(int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read(int64(n))
	return n, err
}
