// Package mcp serves the Model Context Protocol: tools and resources by which an
// agent searches conversations, reads branches and writes to them.
//
// New makes a server of the protocol's SDK, which this package alone knows. The
// server holds no data: each call carries the Services that it may use in its
// context. Surface mounts it on a server.Server at /mcp, where the services are
// those of the request's tenant, and Run serves one client over a pair of pipes.
//
// A tool takes its arguments apart, calls the store or a service, and gives values
// that the SDK holds against the tool's schema. What a message or a head may be is
// decided below, as for every surface. A call that is refused is an answer with
// isError, and says how to mend it.
package mcp
