// Package tree stores conversations with language models as trees. A message
// never changes: an edit is a sibling with the same parent, a regeneration
// another child of the same user message, and nothing is lost.
//
// # Words
//
// A [Conversation] is one tree of nodes, of one tenant. A [Message] is a node
// that somebody said. A branch is the path from a root to a message, its head;
// a head without child messages is a leaf. The conversation's active head is
// the branch that a user is on. A [Summary] is a node that stands for the
// older part of a branch: its anchor, where it hangs, is the deepest message
// whose text its writer saw, and its cutoff the last message that it replaces.
//
// # Cost
//
// What a message inherits from its path (depth, tokens from the root, where
// the leading system messages end) is fixed when it is appended, because a
// path never changes. So an append costs the same in a tree of any size, and a
// page of a transcript costs what the page holds. Methods that walk more say
// so.
//
// # Transactions
//
// [New] takes a pool, a connection or a transaction. Over a transaction a
// caller's own writes and the tree's are committed together.
//
// The package knows nothing of models, prompts or HTTP.
package tree
