// Package mcp serves the Model Context Protocol: tools and resources by which
// an agent searches conversations, reads branches and writes to them.
//
// New returns a server of the protocol's SDK. Only this package knows the SDK.
// The server holds no data: each call finds the Services that it may use in its
// context. API mounts the server on a server.Server at /mcp, where the
// services are those of the request's tenant. Run serves one client over a pair
// of pipes.
//
// A tool takes its arguments apart, calls the store or a service, and returns
// values that the SDK checks against the tool's schema. What a message or a
// head may be is decided below this package, as for every API. The answer
// to a refused call has isError, and says how to fix the call.
package mcp
