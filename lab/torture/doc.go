// Package torture attacks Coppice's promises while servers and Postgres are killed
// with -9, links are cut or silent, and the model is away. Several writers work on
// shared conversations through two servers on one Postgres.
//
// A ledger has each message that was sent, and the answer to it. The run compares
// the ledger with what the servers show, during the faults and in pauses. Each
// message's text begins with a mark of its own, such as [m1000042]. The model is a
// fake whose summaries repeat the marks of their prompts, so that a leak shows
// wherever a text comes out.
//
// The run speaks to the servers as clients do. It reads the database only to
// tell when nothing is under way, and for a few sums over rows that no route
// shows.
package torture
