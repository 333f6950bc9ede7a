package torture

import (
	"log/slog"
	"testing"
)

// A prompt may end in an extract that folds its head. What it shows still has to
// lie on one branch, and the answer gets its parent when it is stored.
func TestPromptThatEndsInAnExtract(t *testing.T) {
	t.Parallel()
	report, ms := newRecorder(slog.New(slog.DiscardHandler)), &marks{}
	m := newModel(1, 0, ms, report)
	t.Cleanup(m.close)
	root, rootText := ms.add(noMark, "root", false)
	result, resultText := ms.add(root, "result", false)
	_, siblingText := ms.add(root, "sibling", false)
	extract := func(texts string) []string { return []string{"<coppice-summary>\n" + texts + "\n</coppice-summary>"} }

	answer := markOf(m.answer(extract(rootText + "\n" + resultText)))
	if n := len(report.report.Violations); n != 0 {
		t.Errorf("%d violations: %v", n, report.report.Violations)
	}
	ms.settle(answer, result)
	if path := ms.path(answer); len(path) != 3 || path[1] != result {
		t.Errorf("the answer's path is %v", path)
	}
	ms.settle(answer, root)
	if path := ms.path(answer); len(path) != 3 {
		t.Errorf("a settled answer was moved: %v", path)
	}
	m.answer(extract(resultText + "\n" + siblingText))
	if n := len(report.report.Violations); n != 1 {
		t.Errorf("a sibling in an extract: %d violations, want 1", n)
	}
	quoted := naming{folded: []mark{root}}.String()
	m.answer(extract("Extract of 2 earlier messages.\n" + quoted + "\n" + rootText + "\n" + resultText))
	if n := len(report.report.Violations); n != 1 {
		t.Errorf("an extract that quotes a summary and folds more: %v", report.report.Violations)
	}
	if head := headOf(extract(quoted)[0]); head != root {
		t.Errorf("a summary that folds its head ends in %v", head)
	}
	m.answer([]string{"no mark, and no extract"})
	if n := len(report.report.Violations); n != 2 {
		t.Errorf("a prompt that ends in nothing known: %d violations, want 2", n)
	}
}

// A retry may come to stand below the answer of an earlier try. An answer that stands
// above its own question, said once, is a leak.
func TestPromptOfARetry(t *testing.T) {
	t.Parallel()
	report, ms := newRecorder(slog.New(slog.DiscardHandler)), &marks{}
	m := newModel(1, 0, ms, report)
	t.Cleanup(m.close)
	asked, question := ms.add(noMark, "question", false)
	_, answer := ms.add(asked, "answer", true)
	_, other := ms.add(asked, "not an answer", false)
	m.answer([]string{question, answer, question})
	if n := len(report.report.Violations); n != 0 {
		t.Errorf("%v", report.report.Violations)
	}
	m.answer([]string{answer, question})
	m.answer([]string{question, other, question})
	if n := len(report.report.Violations); n != 2 {
		t.Errorf("%d violations, want 2: %v", n, report.report.Violations)
	}
}
