// Command coppice stores conversations with language models as trees in
// Postgres: it serves them over REST, keeps their branches inside a model's
// window, and imports, exports, draws, compacts and searches them from a
// terminal.
//
// It is flags, environment and wiring: what a command does stands in the
// packages that it calls, and no other package reads a flag or a variable.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/transfer"
)

const description = `Stores conversations with language models as trees in Postgres, so that an edit or a regeneration is a new branch and nothing is lost.

Without a database URL the data lies in a private Postgres under the data directory. Commands ask the "coppice serve" that runs on it, or start it themselves. With --server they ask a server elsewhere.`

// commands is the whole command line. Every flag has a twin in the environment:
// --data-dir is COPPICE_DATA_DIR.
type commands struct {
	Serve       serveCommand       `cmd:"" help:"Run the server."`
	Chat        chatCommand        `cmd:"" help:"Talk to a model, on the branches of a conversation."`
	Import      importCommand      `cmd:"" help:"Import conversations from files."`
	Export      exportCommand      `cmd:"" help:"Export conversations, or a branch to read."`
	List        listCommand        `cmd:"" help:"List the conversations: pinned ones first, then the one touched last."`
	Tree        treeCommand        `cmd:"" help:"Draw a conversation's tree."`
	Show        showCommand        `cmd:"" help:"Show a branch's transcript."`
	Context     contextCommand     `cmd:"" help:"Show what a model should read of a branch."`
	Explain     explainCommand     `cmd:"" help:"Tell which summary applies to a branch, and why."`
	Compact     compactCommand     `cmd:"" help:"Fold the older part of a branch into a summary."`
	Compactions compactionsCommand `cmd:"" help:"List the compactions of a conversation."`
	Graft       graftCommand       `cmd:"" help:"Bring to a branch what another branch came to."`
	Prune       pruneCommand       `cmd:"" help:"Delete a message with all below it, or undo a summary."`
	Delete      deleteCommand      `cmd:"" help:"Delete a conversation, or all that are old."`
	Search      searchCommand      `cmd:"" help:"Search the text of messages."`
	Recall      recallCommand      `cmd:"" help:"Find the messages that answer a question."`
	MCP         mcpCommand         `cmd:"" name:"mcp" help:"Serve an agent over standard input and output (Model Context Protocol)."`
	Keys        keysCommand        `cmd:"" help:"Make, list and revoke API keys."`
	Audit       auditCommand       `cmd:"" help:"Tell who deleted, exported or shared what."`
	Tenants     tenantsCommand     `cmd:"" help:"List, show and delete tenants."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database's schema up to date."`
	Distribute  distributeCommand  `cmd:"" help:"Distribute the conversations over the nodes of a Citus cluster."`
	Backup      backupCommand      `cmd:"" help:"Write all of a database to a file, while servers work on it."`
	Restore     restoreCommand     `cmd:"" help:"Make a new database of a backup."`
	Upgrade     upgradeCommand     `cmd:"" help:"Move the private Postgres to a newer major version."`
	Config      configCommand      `cmd:"" name:"config" help:"Print the settings of serve that are in force, and where each comes from."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
	Completion  completionCommand  `cmd:"" help:"Print what lets a shell complete commands, flags and conversations."`
	Complete    completeCommand    `cmd:"" hidden:"" help:"Complete a command line, for the shells."`

	logFlags    `group:"All commands"`
	configFlags `group:"All commands"`
}

// Exit codes.
const (
	exitFailed     = 1
	exitUsage      = 2
	exitBrokenPipe = 128 + int(syscall.SIGPIPE) // as if the signal had ended the program
	exitInterrupt  = 128 + int(syscall.SIGINT)
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run carries out one command line and returns the exit code. Whatever the
// command opened is closed when it returns.
func run(args []string) int {
	ctx, signals, stop := untilSignal()
	defer stop()
	// A reader that went away is an error of the write, and not the sudden end
	// of a program that may have a Postgres to stop. The signal is caught and
	// not ignored, because child processes would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	var cli commands
	file, err := readConfig(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "coppice: the file of settings can't be read: %v\n", err)
		return exitUsage
	}
	parser, err := newParser(&cli, kong.Resolvers(file))
	if err != nil {
		panic(err) // the tags above are wrong
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe // of who read as much of the help as they wanted
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "coppice: %v\nSee %s --help.\n", err, commandOf(err))
		return exitUsage
	}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	out := terminal.New(os.Stdout, os.Stderr, plain)
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(out, &cli.logFlags, signals, file, parser.Model)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	return report(ctx, err)
}

// untilSignal gives a context that ends with the first signal to stop: the
// program then winds up. The second signal ends it at once.
func untilSignal() (_ context.Context, i *interrupts, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the last one of a terminal that is closed
	i = new(interrupts)
	go func() {
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				waits = false
			case s := <-signals:
				waits = s == os.Interrupt && i.taken()
			}
		}
		// Before the context ends: who sees that it has can count on the second
		// signal.
		signal.Stop(signals)
		if len(signals) > 0 {
			os.Exit(exitInterrupt)
		}
		cancel()
	}()
	return ctx, i, cancel
}

// interrupts lets a command take a Ctrl-C for something else than its end.
type interrupts struct {
	mu   sync.Mutex
	take func() // nil where it is the end
}

// divert has the next Ctrl-C call take, in the place of ending the program, until
// restore is called.
func (i *interrupts) divert(take func()) (restore func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.take = take
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.take = nil
	}
}

// taken tells whether a Ctrl-C was taken for something else.
func (i *interrupts) taken() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	take := i.take
	if take == nil {
		return false
	}
	i.take = nil
	take()
	return true
}

// commandOf is the command that a mistake in the command line was made in, as
// one types it.
func commandOf(err error) string {
	var mistake *kong.ParseError
	if errors.As(err, &mistake) && mistake.Context != nil {
		if n := mistake.Context.Selected(); n != nil {
			return n.FullPath()
		}
	}
	return "coppice"
}

func newParser(cli *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(cli, append(options,
		kong.Name("coppice"),
		kong.Description(description),
		kong.DefaultEnvars("COPPICE"),
		kong.Vars{
			"data_dir":  defaultDataDir(),
			"cache_dir": defaultCacheDir(),
			"formats":   strings.Join(transfer.Formats(), ", "),
		},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)...)
}
