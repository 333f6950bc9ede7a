// Package speed measures what Coppice costs beside what the same work costs
// without it: every figure is taken by turns with a floor, in one run, on one
// machine, so that whatever else the machine does is in both.
//
// What is measured is a server in a process of its own, over HTTP on loopback,
// through a client that does little more than copy bytes ([client]). Its floors
// are the same SQL on the same database: through pgx, as any Go program would
// send it ("sql"), and as pgbench does with -M prepared, from plain connections
// in a tight loop that decodes nothing ("prepared"). A third floor is a server
// in a process of its own that does nothing but send these statements
// ("net/http", [Bare]): what it adds to them is what any server in Go does. An
// earlier program can be measured as well, on the same database ("before").
// Beside them stand two common designs on the same messages, each at its best,
// without a server in between: messages in a table, of which a conversation is
// loaded whole and walked in memory ("load all"), and a conversation as one row
// of jsonb ("one row").
//
// Allocations and processor time are read from the server's own /metrics, before
// and after, less what a reading itself costs: they are all that the process
// did meanwhile. Those of variants that run in this process come from its own
// runtime, the loop around them included.
//
// The package starts no server and no database: cmd/lab hands it both.
package speed
