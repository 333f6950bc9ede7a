// Package firsttoken measures what OpenAI's surface adds to the time that a model
// takes: to the first token of an answer, in conversations of any length, and
// between the tokens of many streams at once.
//
// Three ways to one fake model have their turn in each round: a direct call, a
// plain reverse proxy before it, and Coppice. The direct call and the proxy get
// the prompt that Coppice sent to the model, so all three carry the same bytes to
// it. The model answers at once, and what is left is the way.
package firsttoken
