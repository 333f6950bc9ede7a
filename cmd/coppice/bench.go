package main

// benchCommand measures what is promised of summaries. What it prints stands
// in docs/branch-safety.md and docs/performance.md.
type benchCommand struct {
	Forks benchForksCommand `cmd:"" help:"Replay branched chats, and count the summaries that edits, regenerations and forks keep."`
	Cache benchCacheCommand `cmd:"" help:"Hold a long chat, and tell how much of its contexts a prompt cache has seen before."`
}
