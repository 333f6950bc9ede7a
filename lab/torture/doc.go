// Package torture attacks Coppice's promises where they are hardest to keep:
// writers work on shared conversations through two servers on one Postgres,
// while a seeded schedule kills the servers and Postgres with -9, cuts, slows
// and silences the links to the database and to the model, fills the pools and
// drops clients.
//
// A ledger knows every operation that was sent, and what was heard of it. It is
// compared with what the servers say, on the way and at the end: nothing
// acknowledged is lost or doubled, no message stands under a wrong parent, no
// context holds what isn't on its branch or leaves out what is. Histories of
// appends, prunes and moves of the active head are checked for
// linearizability. Tenants ask for what others have, and must get the answer of
// what nobody has. A run that checked too little has failed as well; floors.go
// says how much that is.
//
// Besides, pages show a conversation by its events alone (pages.go), links of
// branches are made, read and revoked (shares.go), and files are uploaded, named,
// pruned and read back (files.go).
//
// Each message's text begins with a mark of its own, such as [m1000042]. The
// model is a fake whose summaries name the marks that it was shown, so that a
// leak shows wherever it comes out.
//
// It is test code, and speaks to the servers as any client does, over REST,
// OpenAI's API (openai.go) and MCP (mcp.go). It
// knows the database only to tell when nothing is under way any more, to hold
// locks, and for the jobs of the queue and a few sums over rows, which no route
// shows. Keys it makes as an operator does, by the program's commands.
package torture
