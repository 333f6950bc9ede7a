// Package search finds messages by words and by questions.
//
// Words: a follower of changes makes chunks of a conversation's messages, and
// segments that name a tenant's chunks by word (chunk.go, segment.go, follow.go).
// They hold hashes and no text. A search asks them which messages may have its
// words, and reads these messages (source.go, messages.go). Messages that are in no
// chunk yet are read, too.
//
// Questions: a [Service] keeps an index of stems in memory for each conversation that
// was asked about lately (conversation.go, index.go). The first question reads the
// conversation, and each later one what was appended since. The index is dropped when
// it wasn't used for long, or when a message that it knows was pruned. Over a
// tenant, the chunks name the conversations.
//
// One scorer ranks both (rank.go). Where the operator has a model for it, messages
// have vectors besides (package search/embed), whose ranking is fused with that of
// the words. Without vectors, or while the model fails, words alone count.
//
// The package knows nothing of HTTP and prompts.
package search
