// Package wire turns OpenAI's wire forms into values and back: the Responses API,
// Conversations, chat completions and their streams. It asks no database and knows no
// request of HTTP.
//
// A message of a tree is a chat-completions message. OpenAI's Responses API has
// items instead: an assistant's turn with reasoning, text and two calls is one
// message here and four items there. ParseCreate and its siblings read
// requests, whose items become Entries, each with one message. ItemsOf returns
// the items of a stored message. A Stream writes the events of an answer, while
// the answer comes or again from the stored message. Item ids and the final
// response are the same both times.
//
// An id that a client sees contains the ids of the conversation and of the
// node, so the node is found without a table. The id says nothing of tenants:
// every look-up is within the tenant of the request's key.
package wire
