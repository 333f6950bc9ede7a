package recognize

import (
	"net/http"
	"slices"
	"strings"
)

// sessionHeaders name a session, the surest first: our own, Codex's, opencode's, Open
// WebUI's, and what proxies have for sticky sessions. Between them stand all headers
// of the form X-…-Session-Id, such as Claude Code's and LiteLLM's.
var (
	sessionHeaders = []string{"X-Coppice-Session", "Thread-Id", "Session-Id", "Session_id", "X-Opencode-Session", "X-Openwebui-Chat-Id"}
	proxyHeaders   = []string{"X-Session-Id", "X-Session-Affinity"}
)

// Recorded reads the header X-Coppice-Record, by which a client has a request recorded, or
// not; said is false of a request without it.
func Recorded(h http.Header) (recorded, said bool) {
	switch strings.ToLower(h.Get("X-Coppice-Record")) {
	case "false", "0", "no":
		return false, true
	case "true", "1", "yes":
		return true, true
	}
	return false, false
}

// sessionMembers are members of a request's metadata that name a session.
var sessionMembers = []string{"session_id", "thread_id", "conversation_id", "chat_id", "litellm_session_id"}

// Session returns the name of the session that a request belongs to, as its client
// says by a header or in its metadata; "" where the client names none. A key of a
// prompt cache is no session: all chats of an app may have the same one.
func Session(h http.Header, metadata map[string]string) string {
	named := func(names []string) string {
		for _, name := range names {
			if value := h.Get(name); value != "" {
				return name + "\x00" + value
			}
		}
		return ""
	}
	if s := named(sessionHeaders); s != "" {
		return s
	}
	var others []string
	for name := range h {
		if strings.HasPrefix(name, "X-") && strings.HasSuffix(name, "-Session-Id") {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	if s := named(append(others, proxyHeaders...)); s != "" {
		return s
	}
	for _, name := range sessionMembers {
		if value := metadata[name]; value != "" {
			return "metadata." + name + "\x00" + value
		}
	}
	return ""
}
