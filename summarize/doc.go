// Package summarize keeps every branch of a conversation inside a model's
// window. It builds the context that a model reads for a head, plans what to
// fold, has a summary written, and saves it as a node of the tree.
//
// # The rule
//
// A summary applies to a head if its anchor lies on the path from the root to
// that head. Of several summaries, the one with the deepest anchor applies; of
// several at one anchor, the newest. A summary's writer saw only messages of
// root → anchor, so no text of another branch can reach a context through the
// summary.
//
// # From the bottom up
//
//   - [Settings] and their [Budget] say when and how much. [MakePlan] decides, as
//     a pure function of a branch and its settings.
//   - Package prompt makes the input of a summarizer: the messages, fenced so
//     that they stay data, and the task.
//   - A [Summarizer] writes the summary: a [Cascade] of models, and last the
//     offline digest of package digest, which needs no network.
//   - A [Service] returns contexts ([Service.Context]), compacts
//     ([Service.Compact]) and explains itself ([Service.Explain]). The outcome of
//     a compaction is decided in one place (outcome.go).
//   - Package jobs runs compactions in the background.
//
// The package knows nothing of HTTP, and it calls models only through package
// llm.
package summarize
