// Package replica lets reads go to a streaming replica of the database, so that a
// client still reads what it wrote.
//
// Postgres streams its log from the primary to the replica, which replays it. So
// the replica shows the past, mostly that of some milliseconds ago. Three rules
// keep a client from noticing:
//
//   - After each write, the server remembers how far the primary's log goes, for
//     the conversation and for its tenant. A read goes to the replica once the
//     replica has replayed that much, and to the primary before.
//   - The answer of a write has the same position as a token. A client that sends
//     it with a read gets the same promise from every server, not only from the
//     one that took the write.
//   - A read that the replica can't answer is asked again on the primary. So no
//     message is missing because the replica doesn't have it yet, and no read
//     fails because the replica ended it.
//
// Where the replica is away, or too far behind, all reads go to the primary.
//
// The package decides where to read. Which requests may be answered by a replica
// is in package server's table of routes.
package replica
