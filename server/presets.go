package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-chat/coppice/summarize"
)

// A Preset is the schema Preset: with what a conversation can begin.
type Preset struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	System      string          `json:"system,omitempty"`      // the first message
	Model       string          `json:"model,omitempty"`       // that answers
	Temperature *float64        `json:"temperature,omitempty"` // of the answers
	Settings    json.RawMessage `json:"settings,omitempty"`    // of the conversation
}

// ParsePresets reads a JSON array of presets. CheckPresets checks what they say.
func ParsePresets(data []byte) (presets []Preset, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&presets); err != nil {
		return nil, fmt.Errorf("presets are a JSON array of objects with name, description, system, model, temperature and settings: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("presets are one JSON array, and something follows it")
	}
	return presets, nil
}

// CheckPresets returns an error that names the first preset that can't stand beside
// the server's models and its settings of contexts. With nil models, any may answer.
func CheckPresets(presets []Preset, models []Model, settings summarize.Settings) error {
	answers := map[string]bool{"": true}
	for _, m := range models {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			answers[name] = m.Replies
		}
	}
	seen := map[string]bool{}
	for i, p := range presets {
		var why string
		_, err := settings.With(p.Settings)
		switch {
		case strings.TrimSpace(p.Name) == "":
			why = "it has no name"
		case seen[p.Name]:
			why = "another one has its name"
		case models != nil && !answers[p.Model]:
			why = fmt.Sprintf("no model %q answers here", p.Model)
		case p.Temperature != nil && (*p.Temperature < 0 || *p.Temperature > 2):
			why = "its temperature must be 0 to 2"
		case err != nil:
			why = err.Error()
		default:
			seen[p.Name] = true
			continue
		}
		return fmt.Errorf("preset %d (%q): %s", i+1, p.Name, why)
	}
	return nil
}

// listPresets answers with all of them, as a server has but a few.
func listPresets(r *Request) (Answer, error) {
	list := struct {
		Data []Preset `json:"data"`
		Next *string  `json:"next_cursor"`
	}{Data: r.server.cfg.Presets}
	if list.Data == nil {
		list.Data = []Preset{}
	}
	return answerStruct(list)
}
