package prompttest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Parsed is a prompt taken apart again, by its marks alone.
type Parsed struct {
	Parts        []string // names of the files with the messages' texts
	Prior        string
	Kept         []Entry
	Leaving      []Entry
	Fold         []Entry
	LookAhead    []Entry
	Instructions string
}

// An Entry is a label of a transcript with the lines under it, or a call,
// which has its arguments on the line.
type Entry struct{ Label, Text string }

var parsedLabel = regexp.MustCompile(`^((?:system|developer|user|assistant|tool)(?: "[^"]*")?(?: refuses| \(stays word for word\))?|file "[^"]*"|result of (?:[A-Za-z0-9_][A-Za-z0-9_.:/-]*|"[^"]*"|an unknown tool)(?: \(call \d+\))?(?: \((?:error|exit status -?\d+|error, exit status -?\d+)\))?):( \(empty\))?$`)

var parsedCall = regexp.MustCompile(`^((?:assistant|user)(?: "[^"]*")? calls (?:[A-Za-z0-9_][A-Za-z0-9_.:/-]*|"[^"]*"|an unknown tool)(?: \(call \d+\))?): ?(.*)$`)

var parsedDay = regexp.MustCompile(`^on [A-Z][a-z]+day \d{4}-\d\d-\d\d$`)

// Parse reads a prompt the way a strict reader would: the roles of user and
// assistant alternate, every message of the user is one part, every part has its tags once, and every line between them has the
// mark or is a label. Anything else is an error.
func Parse(messages []json.RawMessage, nonce string) (Parsed, error) {
	var p Parsed
	for i, raw := range messages {
		var m struct{ Role, Content string }
		if err := json.Unmarshal(raw, &m); err != nil {
			return p, err
		}
		if i == 0 {
			if m.Role != "system" {
				return p, fmt.Errorf("the first message is of %s", m.Role)
			}
			p.Parts = append(p.Parts, "system")
			continue
		}
		if i > 1 && i%2 == 0 && m.Role == "assistant" && m.Content == "Understood." {
			continue
		}
		if m.Role != "user" || i%2 == 0 {
			return p, fmt.Errorf("message %d is of %s", i, m.Role)
		}
		if strings.Count(m.Content, "<"+tagName("cutoff", nonce)) > 0 {
			if m.Content != "<"+tagName("cutoff", nonce)+"/>\nCUTOFF. What is to be summarized ends here. Summarize nothing that stands after this message." {
				return p, fmt.Errorf("a cutoff marker with something beside it: %q", m.Content)
			}
			p.Parts = append(p.Parts, "cutoff")
			continue
		}
		part, inside, err := parseFence(m.Content, nonce)
		if err != nil {
			return p, fmt.Errorf("message %d: %w", i, err)
		}
		switch part {
		case "prior":
			p.Prior, err = parseQuote(inside)
		case "kept":
			p.Kept, err = parseTranscript(inside)
		case "leaving":
			p.Leaving, err = parseTranscript(inside)
		case "fold":
			p.Fold, err = parseTranscript(inside)
		case "lookahead":
			p.LookAhead, err = parseTranscript(inside)
		case "instructions":
			part = "closing"
			p.Instructions, err = parseQuote(inside)
		case "":
			part = "closing"
		}
		if err != nil {
			return p, fmt.Errorf("message %d, %s: %w", i, part, err)
		}
		p.Parts = append(p.Parts, part)
	}
	return p, nil
}

// parseFence finds the one fence of a message; "" where there is none.
func parseFence(content, nonce string) (string, []string, error) {
	var part string
	var inside []string
	open, closed := false, false
	for line := range strings.SplitSeq(content, "\n") {
		name, isOpening := strings.CutPrefix(line, "<coppice-")
		name, hasNonce := strings.CutSuffix(name, "-"+nonce+">")
		switch {
		case isOpening && hasNonce && !open && !closed:
			part, open = name, true
		case open && line == "</"+tagName(part, nonce)+">":
			open, closed = false, true
		case strings.Contains(strings.ToLower(line), nonce):
			return "", nil, fmt.Errorf("the nonce is in %q", line)
		case open:
			inside = append(inside, line)
		case strings.HasPrefix(line, "|"):
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
		text, ok := strings.CutPrefix(line, "|")
		if !ok || text != "" && text[0] != ' ' {
			return "", fmt.Errorf("%q has no mark", line)
		}
		texts[i] = strings.TrimPrefix(text, " ")
	}
	return unescape(strings.Join(texts, "\n")), nil
}

func parseTranscript(lines []string) ([]Entry, error) {
	var entries []Entry
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		if parsedDay.MatchString(line) {
			continue
		}
		if call := parsedCall.FindStringSubmatch(line); call != nil {
			entries = append(entries, Entry{unescape(call[1]), unescape(call[2])})
			continue
		}
		label := parsedLabel.FindStringSubmatch(line)
		if label == nil {
			return nil, fmt.Errorf("%q is neither quoted nor a label", line)
		}
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n], "|") {
			n++
		}
		if (n == 0) != (label[2] != "") {
			return nil, fmt.Errorf("%q has %d lines", line, n)
		}
		text, err := parseQuote(lines[:n])
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{unescape(label[1]), text})
		lines = lines[n:]
	}
	return entries, nil
}

// tagName is the name of a part's tag.
func tagName(part, nonce string) string { return "coppice-" + part + "-" + nonce }

var escaped = regexp.MustCompile(`⟦U\+([0-9A-F]{4,6})⟧`)

// unescape gives a text as its author wrote it.
func unescape(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(code string) string {
		n, _ := strconv.ParseUint(escaped.FindStringSubmatch(code)[1], 16, 32) // digits
		return string(rune(n))
	})
}
