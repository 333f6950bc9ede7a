// Package citus has what a database needs that Citus distributes over nodes: which
// tables are distributed and how, and an append as statements of one table and one key
// each, which the nodes plan. Package db tells whether a database is distributed
// (db.Distributed), and opens connections for it.
package citus
