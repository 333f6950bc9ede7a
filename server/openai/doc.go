// Package openai serves OpenAI's API on a server.Server: Responses, Conversations and
// chat completions. Package wire below it reads the requests and writes the answers;
// this package has the handlers and the table of their routes.
//
// The handlers of responses are in create.go, retrieve.go, manage.go, compact.go and
// socket.go; those of conversations in conversations.go and conversationitems.go; those
// of chat completions in completions.go. place.go reads which
// message a request names; package recognize stores and answers the turn below it, finds
// where histories go on that name none, and finds the answers of retries.
package openai
