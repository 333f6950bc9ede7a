package transfer

import "testing"

func FuzzClaudeCode(f *testing.F) { fuzzFormat(f, "claude-code", "claude-code.jsonl") }
func FuzzPi(f *testing.F)         { fuzzFormat(f, "pi", "pi.jsonl") }
func FuzzTauBench(f *testing.F)   { fuzzFormat(f, "tau-bench", "tau-bench.json") }
func FuzzSWEAgent(f *testing.F) {
	fuzzFormat(f, "swe-agent", "swe-agent.json", "swe-agent-steps.json")
}
func FuzzMessages(f *testing.F) { fuzzFormat(f, "messages", "messages.jsonl", "message-list.json") }
func FuzzCoppice(f *testing.F)  { fuzzFormat(f, "coppice", "coppice.jsonl", "coppice-unsound.jsonl") }
func FuzzCodex(f *testing.F)    { fuzzFormat(f, "codex", "codex.jsonl", "codex-bare.jsonl") }
