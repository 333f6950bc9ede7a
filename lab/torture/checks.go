package torture

import (
	"fmt"
	"io"
)

// Checks counts what was compared.
type Checks struct {
	Pauses         int `json:"pauses"`
	Conversations  int `json:"conversations"`
	Messages       int `json:"messages"`
	Transcripts    int `json:"transcripts"`
	Contexts       int `json:"contexts"`
	Summarized     int `json:"summarized_contexts"` // of these, with a summary
	Prompts        int `json:"prompts"`             // of replies
	SummaryPrompts int `json:"summary_prompts"`
	Outages        int `json:"outages"` // requests to the model while its provider was away
	Healed         int `json:"healed"`  // summaries that were made again once it was back

	Merged      int `json:"merged_summaries"` // contexts whose summary merged another
	Pins        int `json:"pins"`             // pinned messages in summarized contexts
	Calls       int `json:"tool_calls"`       // calls with their results in contexts
	CutsInTurns int `json:"cuts_in_turns"`    // contexts cut within an agent's run of calls
	Repairs     int `json:"repairs"`          // results that contexts made up for calls that have none
	Appended    int `json:"appended"`         // messages in answers to appends
	Pruned      int `json:"pruned"`
	PrunedRoots int `json:"pruned_roots"`
	Undone      int `json:"undone_summaries"`
	Exact       int `json:"exact_prunes"` // while nothing else was under way
	Replays     int `json:"replays"`      // streams read on after an event
	Resumed     int `json:"resumed"`      // streams that broke off and were read on
	Foreign     int `json:"foreign"`      // requests for what another tenant has
	Searches    int `json:"searches"`
	Exports     int `json:"exports"`
	Forks       int `json:"forks"` // compared with their sources, summaries included
	ForkedSums  int `json:"forked_summaries"`
	RevokedKeys int `json:"revoked_keys"`
	UnknownKeys int `json:"unknown_keys"`
	Applicable  int `json:"applicable"` // contexts whose summary is the one that the tree says
	Headers     int `json:"headers"`    // conversations read
	Turns       int `json:"openai_turns"`
	MCP         int `json:"mcp_appends"`

	Events       int `json:"events"`        // of conversations
	ReadOn       int `json:"read_on"`       // streams of them that were read on
	Pages        int `json:"pages"`         // whose view was compared
	TenantEvents int `json:"tenant_events"` // of all of a tenant's conversations
	TenantReadOn int `json:"tenant_read_on"`
	Feeds        int `json:"feeds"` // whose list was compared
	Shares       int `json:"shares"`
	Revoked      int `json:"revoked_shares"`
	Files        int `json:"files"` // read back
	FileExports  int `json:"file_exports"`
}

func (c *Checks) addContext(seen contextSeen) {
	c.Contexts++
	c.Pins += seen.pins
	c.Calls += seen.calls
	c.Repairs += seen.repairs
	for _, flag := range []struct {
		is    bool
		count *int
	}{{seen.summarized, &c.Summarized}, {seen.merged, &c.Merged}, {seen.cutInTurn, &c.CutsInTurns}} {
		if flag.is {
			*flag.count++
		}
	}
}

func (c Checks) print(w io.Writer) {
	fmt.Fprintf(w, "\nchecked in %d pauses\n", c.Pauses)
	for _, line := range []struct {
		what string
		n    int
	}{
		{"trees", c.Conversations}, {"messages in them", c.Messages}, {"conversations themselves", c.Headers}, {"transcripts", c.Transcripts},
		{"messages in answers to appends", c.Appended}, {"contexts", c.Contexts}, {"with a summary", c.Summarized}, {"that merged another", c.Merged},
		{"that is the one that applies", c.Applicable}, {"pinned messages folded", c.Pins}, {"calls with their results", c.Calls},
		{"cut within a turn of calls", c.CutsInTurns}, {"calls without a result", c.Repairs}, {"prompts of replies", c.Prompts}, {"prompts of summaries", c.SummaryPrompts},
		{"requests in outages of the provider", c.Outages}, {"summaries made again after them", c.Healed},
		{"prunes", c.Pruned}, {"prunes of roots", c.PrunedRoots}, {"prunes alone", c.Exact}, {"summaries undone", c.Undone},
		{"streams read on where they broke", c.Resumed}, {"streams read once more", c.Replays}, {"forks", c.Forks}, {"summaries in them", c.ForkedSums},
		{"searches", c.Searches}, {"exports", c.Exports}, {"foreign requests", c.Foreign}, {"revoked keys", c.RevokedKeys}, {"unknown keys", c.UnknownKeys},
		{"turns over OpenAI's surface", c.Turns}, {"appends over MCP", c.MCP},
		{"events of conversations", c.Events}, {"streams of them read on", c.ReadOn}, {"pages that show the tree", c.Pages},
		{"events of tenants", c.TenantEvents}, {"streams of tenants read on", c.TenantReadOn}, {"lists kept by events", c.Feeds},
		{"links read", c.Shares}, {"revoked links", c.Revoked}, {"attachments read back", c.Files}, {"exports with attachments", c.FileExports},
	} {
		fmt.Fprintf(w, "  %-34s %8d\n", line.what, line.n)
	}
}
