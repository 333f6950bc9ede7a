package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize/prompt"
)

// replayMetadata is metadata.json.
type replayMetadata struct {
	Compaction json.RawMessage `json:"compaction"` // the record, in the REST API's shape
	Whole      bool            `json:"whole"`      // nothing is missing
	Missing    []string        `json:"missing"`    // what can't be rebuilt, and why
	LeakedTags []string        `json:"leaked_tags"`
	Counts     replayCounts    `json:"counts"`
	Again      *replayAgain    `json:"again,omitempty"` // by --model
}

type replayCounts struct {
	FoldedMessages       int `json:"folded_messages"`
	LookAheadMessages    int `json:"look_ahead_messages"`
	PriorSummaryTokens   int `json:"prior_summary_tokens"`
	TargetTokens         int `json:"target_tokens"`
	Steps                int `json:"steps"`
	PromptTokens         int `json:"prompt_tokens"` // of all steps, estimated
	TranscriptCharacters int `json:"transcript_characters"`
	SummaryCharacters    int `json:"summary_characters"`
}

type replayAgain struct {
	Model      string           `json:"model"`
	Tokens     int              `json:"tokens"`
	Characters int              `json:"characters"`
	LeakedTags []string         `json:"leaked_tags"`
	Attempts   []prompt.Attempt `json:"attempts"`
}

func (r *replayed) metadata() replayMetadata {
	m := replayMetadata{
		Compaction: r.AppendJSON(nil), Whole: len(r.Missing) == 0, Missing: orEmpty(r.Missing), LeakedTags: orEmpty(r.LeakedTags),
		Counts: replayCounts{
			FoldedMessages: len(r.Input.Fold), LookAheadMessages: len(r.Input.LookAhead), PriorSummaryTokens: r.Input.PriorTokens,
			TargetTokens: r.Input.TargetTokens, Steps: len(r.Steps),
			TranscriptCharacters: utf8.RuneCountInString(r.Transcript), SummaryCharacters: utf8.RuneCountInString(r.Summary),
		},
	}
	for _, s := range r.Steps {
		m.Counts.PromptTokens += s.Tokens
	}
	if r.again != nil {
		m.Again = &replayAgain{
			Model: r.model, Tokens: r.again.Tokens, Characters: utf8.RuneCountInString(r.again.Text),
			LeakedTags: orEmpty(r.again.LeakedTags), Attempts: r.again.Attempts,
		}
	}
	return m
}

// orEmpty is [] in JSON where there is nothing.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// write writes the compaction's folder in dir. Files that are there are
// replaced; those that it has no text for aren't made.
func (r *replayed) write(dir string) error {
	folder := filepath.Join(dir, r.folder())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	metadata, err := indentedJSON(r.metadata())
	if err != nil {
		return err
	}
	files := map[string]string{"metadata.json": metadata, "input.txt": r.Transcript, "output.txt": r.Summary}
	for i, s := range r.Steps {
		number := ""
		if i > 0 {
			number = fmt.Sprint(".", i+1)
		}
		files["system_prompt"+number+".txt"] = s.System
		files["prompt"+number+".json"] = messageArray(s.Messages)
		files["user_messages"+number+".txt"] = numbered(s.User)
	}
	if r.again != nil {
		files["output."+fileName(r.model)+".txt"] = r.again.Text
		files["side_by_side."+fileName(r.model)+".txt"] = strings.Join(r.sideBySide(terminal.PlainWidth), "\n")
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.TrimSuffix(text, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// messageArray is JSON with a message a line, byte for byte.
func messageArray(messages []json.RawMessage) string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = string(m)
	}
	return "[\n" + strings.Join(lines, ",\n") + "\n]"
}

// numbered puts a line that says which it is before each message.
func numbered(messages []string) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "=== user message %d of %d\n%s\n", i+1, len(messages), m)
	}
	return b.String()
}

// fileName is a model's name as part of a file's.
func fileName(model string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, model)
}
