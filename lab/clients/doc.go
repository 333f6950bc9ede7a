// Package clients drives Coppice's OpenAI and Anthropic APIs by unmodified clients: each
// script beside it uses one SDK or agent framework from npm as its users do, and
// then reads through the native API what the tree holds. The package has tests
// only.
package clients
