// Package bench measures what Coppice promises of summaries on branches: how
// often an edit, a regeneration or a fork leaves a branch with its summary, what
// the summaries cost, and how much of a context a provider's prompt cache has
// seen before. The command "lab bench" prints what it finds.
//
// [Forks] replays conversations in time order against the real planner and a
// stand-in for the summarizer, in memory: it needs no database, no model and no
// network, and the same seed gives the same figures. [Cache] drives the real
// service over a store, with whatever summarizer that has.
//
// It is not where the speed of anything is measured: that is package speed's,
// below it.
package bench
