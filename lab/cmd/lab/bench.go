package main

// benchCommand measures. What it prints stands in docs/branch-safety.md,
// docs/performance.md and docs/performance-tables.md.
type benchCommand struct {
	Forks      benchForksCommand  `cmd:"" help:"Replay branched chats, and count the summaries that edits, regenerations and forks keep."`
	Cache      benchCacheCommand  `cmd:"" help:"Hold a long chat, and tell how much of its contexts a prompt cache has seen before."`
	OpenAI     benchOpenAICommand `cmd:"" name:"openai" help:"Measure the time to the first token over OpenAI's surface, beside a direct call of the model and a plain proxy."`
	Append     benchPartCommand   `cmd:"" help:"Measure appends, by 1, 8 and 32 writers."`
	Context    benchPartCommand   `cmd:"" help:"Measure contexts of short and long tails."`
	Transcript benchPartCommand   `cmd:"" help:"Measure pages of a transcript."`
	Tree       benchPartCommand   `cmd:"" help:"Measure whole trees, without bodies."`
	Import     benchPartCommand   `cmd:"" help:"Measure imports of many small conversations."`
	Mixed      benchPartCommand   `cmd:"" help:"Measure four contexts to one append: how many at most, and how long one waits at half of that."`
	Growth     benchGrowthCommand `cmd:"" help:"Measure what grows with long conversations, large databases, many siblings and many branches."`
	All        benchAllCommand    `cmd:"" help:"Measure speed in all these ways, and write the tables and plots of the documentation."`
	Bare       benchBareCommand   `cmd:"" hidden:"" help:"Serve the statements of appends, contexts and pages by net/http, and nothing else: what the others are compared with."`
}

// outputFlags are those of every command that prints figures.
type outputFlags struct {
	JSON bool `name:"json" help:"Print JSON."`
}
