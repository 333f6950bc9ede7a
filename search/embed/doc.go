// Package embed puts messages and questions into vectors, so that recall finds
// messages that say the same in other words.
//
// A [Service] asks the operator's model. It embeds the messages of a conversation
// in batches, which a background job calls for, and a question within a short
// time. While the model fails, it is asked sparingly, and recall goes on with
// words alone.
//
// The package stores vectors through package tree and ranks nothing.
package embed
