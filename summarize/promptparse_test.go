package summarize

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A parsedPrompt is a prompt taken apart again, by its marks alone.
type parsedPrompt struct {
	parts        []promptPart
	prior        string
	fold         []parsedEntry
	lookAhead    []parsedEntry
	instructions string
}

// A parsedEntry is a label of a transcript with the lines under it, or a call,
// which has its arguments on the line.
type parsedEntry struct{ label, text string }

var parsedLabel = regexp.MustCompile(`^((?:system|developer|user|assistant|tool)(?: "[^"]*")?(?: refuses)?|result of (?:[A-Za-z0-9_][A-Za-z0-9_.:/-]*|"[^"]*"|an unknown tool)(?: \(error\))?):( \(empty\))?$`)

var parsedCall = regexp.MustCompile(`^((?:assistant|user)(?: "[^"]*")? calls (?:[A-Za-z0-9_][A-Za-z0-9_.:/-]*|"[^"]*"|an unknown tool)): ?(.*)$`)

// parsePrompt reads a prompt the way a strict reader would: every message is
// one part, every part has its tags once, and every line between them has the
// mark or is a label. Anything else is an error.
func parsePrompt(messages []json.RawMessage, nonce string) (parsedPrompt, error) {
	var p parsedPrompt
	for i, raw := range messages {
		var m struct{ Role, Content string }
		if err := json.Unmarshal(raw, &m); err != nil {
			return p, err
		}
		if i == 0 {
			if m.Role != "system" {
				return p, fmt.Errorf("the first message is of %s", m.Role)
			}
			p.parts = append(p.parts, partSystem)
			continue
		}
		if m.Role != "user" {
			return p, fmt.Errorf("message %d is of %s", i, m.Role)
		}
		if strings.Count(m.Content, "<"+tagName(partCutoff, nonce)) > 0 {
			if m.Content != "<"+tagName(partCutoff, nonce)+"/>\nCUTOFF. What is to be summarized ends here. Summarize nothing that stands after this message." {
				return p, fmt.Errorf("a cutoff marker with something beside it: %q", m.Content)
			}
			p.parts = append(p.parts, partCutoff)
			continue
		}
		part, inside, err := parseFence(m.Content, nonce)
		if err != nil {
			return p, fmt.Errorf("message %d: %w", i, err)
		}
		switch part {
		case partPrior:
			p.prior, err = parseQuote(inside)
		case partFold:
			p.fold, err = parseTranscript(inside)
		case partLookAhead:
			p.lookAhead, err = parseTranscript(inside)
		case partInstructions:
			part = partClosing
			p.instructions, err = parseQuote(inside)
		case "":
			part = partClosing
		}
		if err != nil {
			return p, fmt.Errorf("message %d, %s: %w", i, part, err)
		}
		p.parts = append(p.parts, part)
	}
	return p, nil
}

// parseFence finds the one fence of a message; "" where there is none.
func parseFence(content, nonce string) (promptPart, []string, error) {
	var part promptPart
	var inside []string
	open, closed := false, false
	for line := range strings.SplitSeq(content, "\n") {
		name, isOpening := strings.CutPrefix(line, "<coppice-")
		name, hasNonce := strings.CutSuffix(name, "-"+nonce+">")
		switch {
		case isOpening && hasNonce && !open && !closed:
			part, open = promptPart(name), true
		case open && line == "</"+tagName(part, nonce)+">":
			open, closed = false, true
		case strings.Contains(strings.ToLower(line), nonce):
			return "", nil, fmt.Errorf("the nonce is in %q", line)
		case open:
			inside = append(inside, line)
		case strings.HasPrefix(line, quoteMark):
			return "", nil, fmt.Errorf("%q stands outside", line)
		}
	}
	if open {
		return "", nil, fmt.Errorf("the tag of %s is not closed", part)
	}
	return part, inside, nil
}

func parseQuote(lines []string) (string, error) {
	texts := make([]string, len(lines))
	for i, line := range lines {
		text, ok := strings.CutPrefix(line, quoteMark)
		if !ok || text != "" && text[0] != ' ' {
			return "", fmt.Errorf("%q has no mark", line)
		}
		texts[i] = strings.TrimPrefix(text, " ")
	}
	return unescapeText(strings.Join(texts, "\n")), nil
}

func parseTranscript(lines []string) ([]parsedEntry, error) {
	var entries []parsedEntry
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		if call := parsedCall.FindStringSubmatch(line); call != nil {
			entries = append(entries, parsedEntry{unescapeText(call[1]), unescapeText(call[2])})
			continue
		}
		label := parsedLabel.FindStringSubmatch(line)
		if label == nil {
			return nil, fmt.Errorf("%q is neither quoted nor a label", line)
		}
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n], quoteMark) {
			n++
		}
		if (n == 0) != (label[2] != "") {
			return nil, fmt.Errorf("%q has %d lines", line, n)
		}
		text, err := parseQuote(lines[:n])
		if err != nil {
			return nil, err
		}
		entries = append(entries, parsedEntry{unescapeText(label[1]), text})
		lines = lines[n:]
	}
	return entries, nil
}
