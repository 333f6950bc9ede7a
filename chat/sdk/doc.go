// Package sdk has what OpenAI's API and Anthropic's have in common on the wire: the pieces of
// an answer, and server-sent events. The packages wire of the two have their forms.
package sdk
