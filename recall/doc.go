// Package recall finds the messages of a branch that answer a question.
//
// A [Service] keeps an index of words in memory for each conversation that was
// asked about lately. An index is built from the tree on first use, gets what
// was appended since with each question, and is dropped when it wasn't used for
// long or when something that it knows was pruned. It holds no text: what an
// answer shows is read from the tree.
//
// The package knows nothing of HTTP and prompts, and nothing of embeddings.
package recall
