// Package tree stores conversations with language models as trees. A message
// never changes. An edit is a sibling with the same parent, a regeneration is
// another child of the same user message, and nothing is lost.
//
// # Words
//
// A [Conversation] is one tree of nodes, of one tenant. A [Message] is a node
// that somebody said. A branch is the path from a root to a message, which is its
// head. A head without child messages is a leaf. The conversation's active head
// is the branch that a user is on. A [Summary] is a node that stands for the
// older part of a branch. Its anchor, where it hangs, is the deepest message
// whose text its writer saw. Its cutoff is the last message that it replaces.
//
// # Cost
//
// What a message inherits from its path is fixed when it is appended, because a
// path never changes: its depth, the tokens from the root, and where the leading
// system messages end. So an append costs the same in a tree of any size, and a
// page of a transcript costs what the page holds. The comment of a method that
// walks more says so.
//
// # Transactions
//
// [New] takes a pool, a connection or a transaction. Over a transaction, a
// caller's own writes and the tree's are committed together.
//
// The package knows no models, no prompts and no HTTP.
package tree
