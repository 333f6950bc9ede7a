// Package torture attacks Coppice's promises where they are hardest to keep.
// Several writers work on shared conversations through two servers on one
// Postgres. Meanwhile the run kills the servers and Postgres with -9, cuts, slows
// and silences the links to the database and to the model, and takes the model
// away. The seed gives the order of the faults and the writers' choices.
//
// A ledger has every operation that was sent, and the answer to it. The run
// compares the ledger with what the servers show, during the faults and in
// pauses: nothing acknowledged is lost or stored twice, nothing comes back after
// a prune, no context shows a text of another branch or leaves one of its own
// out, and no tenant learns anything of another. A run that checked too little
// has failed as well.
//
// Each message's text begins with a mark of its own, such as [m1000042]. The
// model is a fake whose summaries repeat the marks that it was shown, so that a
// leak shows wherever it comes out.
//
// The run speaks to the servers as clients do. It reads the database only to
// tell when nothing is under way, and for a few sums over rows that no route
// shows.
//
// The files: run and setup start and end everything. server, postgres, link and
// model are the parts that are attacked, and faults attacks them. client, writer,
// operations, reads, replies, openai, events and tenants are the clients. ledger
// and marks are what the clients know. contexts, trees and pause compare it with
// what the servers show, and report counts.
package torture
