// Package openai serves OpenAI's API on a server.Server: Responses, Conversations and
// chat completions. Package wire below it reads the requests and writes the answers;
// this package has the handlers and the table of their routes.
//
// The handlers of responses are in create.go, retrieve.go, manage.go, compact.go and
// socket.go; those of conversations in conversations.go and conversationitems.go; those
// of chat completions in completions.go and storedcompletion.go. Some clients keep their
// history themselves: package recognize finds where they go on, and the answers of
// retries.
package openai
