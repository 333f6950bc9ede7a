// Package search finds the messages of a branch that answer a question.
//
// A [Service] keeps an index of words in memory for each conversation that was
// asked about lately. The first question builds the index from the tree. Each
// later question adds the messages that were appended since. The index is
// dropped when it wasn't used for long, or when a message that it knows was
// pruned. It holds no text: the texts of an answer are read from the tree.
//
// Where the operator has a model for it, messages have vectors besides, which a
// background job makes by package search/embed. The index holds those of the
// conversation, compares all of the scope with the question's, and fuses the two
// rankings. Without vectors, or while the model fails, words alone count.
//
// The package knows nothing of HTTP and prompts.
package search
