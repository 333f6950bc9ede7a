// Package openai turns OpenAI's wire forms into Coppice's values and back: the
// Responses API, Conversations, chat completions and their streams.
//
// A message of a tree is a chat-completions message. OpenAI's Responses API
// speaks of items instead: an assistant's turn with reasoning, text and two
// calls is one message here and four items there. ParseCreate and its siblings
// read requests, whose items become Entries, each with one message. ItemsOf
// gives the items that a stored message is. A Stream writes the events of an
// answer, while it comes or again from what is stored: item ids and the final
// response are the same both times.
//
// An id that a client sees holds the ids of the conversation and of the node, so
// that it is found without a table. It says nothing of tenants: whoever looks an
// id up does so within the tenant of the request's key.
//
// All of that asks no database and knows no HTTP. Surface mounts it on a
// server.Server: surface.go has the table of routes. The handlers of responses stand in
// create.go, retrieve.go and manage.go, those of conversations in conversations.go
// and conversationitems.go, and those of chat completions in completions.go and
// storedcompletions.go. recognise.go says to which conversation a client belongs
// that keeps its history itself, and retries.go finds the answers of retries.
package openai
