// Package openai turns OpenAI's wire forms into Coppice's values and back: the
// Responses API, Conversations, chat completions and their streams.
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
//
// These parts ask no database and know no HTTP. Surface mounts them on a
// server.Server: api.go has the table of routes. The handlers of responses
// are in create.go, retrieve.go and manage.go, those of conversations in
// conversations.go and conversationitems.go, and those of chat completions in
// completions.go and storedcompletion.go. Some clients keep their history
// themselves: package recognize finds where they go on, and the answers of retries.
package openai
