// Package summarize keeps every branch of a conversation inside a model's
// window. It builds the context that a model reads for a head, plans what to
// fold, has a summary written, and saves it as a node of the tree.
//
// # The rule
//
// A summary applies to a head if its anchor lies on the path from the root to
// that head; of several, the one with the deepest anchor, and at one anchor
// the newest. Its writer saw nothing that isn't on root → anchor, so no text of
// another branch can reach a context through it.
//
// # From the bottom up
//
//   - [Settings] and their [Budget] say when and how much; [MakePlan] decides, a
//     pure function of a branch and its settings.
//   - A prompt fences what people and tools wrote, so that it stays data; a
//     cascade of [Summarizer] models answers it, and last an offline digest
//     that needs no network.
//   - A [Service] gives contexts ([Service.Context]), compacts
//     ([Service.Compact]) and explains itself ([Service.Explain]).
//   - A [Worker] runs compactions in the background, queued in the transaction
//     of the append that made them due.
//
// The package knows nothing of HTTP, and it calls models only through package
// llm.
package summarize
