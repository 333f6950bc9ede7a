package main

// benchCommand measures what is promised of summaries, and of speed. What it
// prints stands in docs/branch-safety.md and docs/performance.md.
type benchCommand struct {
	Forks      benchForksCommand      `cmd:"" help:"Replay branched chats, and count the summaries that edits, regenerations and forks keep."`
	Cache      benchCacheCommand      `cmd:"" help:"Hold a long chat, and tell how much of its contexts a prompt cache has seen before."`
	Append     benchAppendCommand     `cmd:"" help:"Measure appends, by 1, 8 and 32 writers."`
	Context    benchContextCommand    `cmd:"" help:"Measure contexts of short and long tails."`
	Transcript benchTranscriptCommand `cmd:"" help:"Measure pages of a transcript."`
	Tree       benchTreeCommand       `cmd:"" help:"Measure whole trees, without bodies."`
	Import     benchImportCommand     `cmd:"" help:"Measure imports of many small conversations."`
	Mixed      benchMixedCommand      `cmd:"" help:"Measure four contexts to one append: how many at most, and how long one waits at half of that."`
	All        benchAllCommand        `cmd:"" help:"Measure all of these, and write the tables and plots of the documentation."`
	Bare       benchBareCommand       `cmd:"" hidden:"" help:"Serve the statements of appends, contexts and pages by net/http, and nothing else: what the others are compared with."`
	Growth     benchGrowthCommand     `cmd:"" help:"Measure what grows with long conversations, large databases, many siblings and many branches."`
}
