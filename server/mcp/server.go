package mcp

import (
	"context"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions tell a model what there is, and how branches are used.
const instructions = `Coppice stores conversations with language models as trees. Messages never change. An edit or a regeneration is another message under the same parent, and so begins another branch. A branch is the path from the first message to its head, and is named by the head's id; "active" stands for the branch that was used last.

To find something that was said: recall takes a question in plain words and ranks messages, of one branch or of all conversations; search takes words. Both give ids of the form CONVERSATION/MESSAGE, which fetch takes. What recall finds in the scopes folded and branch lies on that branch: nothing of another branch is in it.

To read: list_conversations, list_branches, then read_branch. Older parts of a branch may be folded into a summary, and explain_context tells which; their messages are still there, for recall, fetch and read_branch.

To write: append_messages below the message that is answered. To try something else without losing what is there, append below an earlier message: that is a new branch. fork_branch copies a branch into a conversation of its own. compact_branch folds the older part of a branch into a summary when its context grows too long. graft_branch brings what another branch came to as one message. Nothing is ever overwritten or deleted by these tools.

Ids don't expire. What others pruned or deleted meanwhile is answered as not found.`

// New returns a server of the protocol, with all tools and resources. A call
// finds its Services in its context.
func New(version string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "coppice", Title: "Coppice", Version: version}, &sdk.ServerOptions{
		Instructions: instructions,
		// Neither tools nor resources change while a server runs, so a client that
		// asks for news is answered at once that there are none.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
		SetCacheable: func(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
			c.CacheScope = "private"
			if _, reads := req.(*sdk.ReadResourceRequest); !reads {
				c.TTLMs = int(time.Hour.Milliseconds())
			}
		},
	})
	t := tools{s, map[string]*jsonschema.Schema{}}
	addReads(t)
	addWrites(t)
	addResources(s)
	s.AddReceivingMiddleware(t.checkArguments)
	return s
}

// tools are the tools of a server, and the schemas of their arguments.
type tools struct {
	server    *sdk.Server
	arguments map[string]*jsonschema.Schema
}

// A tool says of a tool what clients show and go by.
type tool struct {
	name, title, description string
	writes                   bool // it adds something; no tool changes or deletes what is there
	idempotent               bool // once more adds nothing
	waits                    bool // it waits for a model
}

// add adds a tool.
func add[In, Out any](all tools, t tool, f func(context.Context, *call, In) (Out, error)) {
	no := false
	all.arguments[t.name] = schemaOf[In]()
	sdk.AddTool(all.server, &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: all.arguments[t.name], OutputSchema: schemaOf[Out](),
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: !t.writes, IdempotentHint: !t.writes || t.idempotent, DestructiveHint: &no, OpenWorldHint: &no,
		},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		out, err := do(ctx, t.waits, func(ctx context.Context, c *call) (Out, error) { return f(ctx, c, in) })
		return nil, out, err
	})
}
