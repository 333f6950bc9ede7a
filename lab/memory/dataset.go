// Package memory measures what is still known of a long conversation: whether
// recall finds the messages that hold the evidence for a question, and how much
// of the evidence a summary still holds.
//
// It reads datasets in the forms in which LoCoMo (locomo10.json), REALTALK (a
// folder of files, a chat each), BEAM (a folder of chats, each with chat.json and
// probing_questions) and XQuAD (a file for each language) are published. It brings
// none of them along.
package memory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Chat is a conversation with questions about it.
type Chat struct {
	Name      string
	Messages  []Message
	Questions []Question
}

// A Message is one of a Chat.
type Message struct {
	Role string
	Name string // of the speaker; "" for none
	Text string
}

// A Question has the messages that hold its evidence, by their index.
type Question struct {
	Kind     string
	Text     string
	Answer   string // "" where the dataset has none
	Evidence map[int]bool
}

// Read reads a dataset: a file of LoCoMo's or XQuAD's, or a folder of REALTALK's or
// BEAM's.
func Read(path string) ([]Chat, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		var any json.RawMessage
		if err := readJSON(path, &any); err != nil {
			return nil, err
		}
		if any[0] == '{' {
			return readSQuAD(path)
		}
		return readLoCoMo(path)
	}
	if files, _ := filepath.Glob(filepath.Join(path, "Chat_*.json")); len(files) > 0 {
		return readREALTALK(files)
	}
	return readBEAM(path)
}

var dialogID = regexp.MustCompile(`D:?(\d+):(\d+)`)

// A question of LoCoMo's or REALTALK's.
type personalQuestion struct {
	Question string   `json:"question"`
	Answer   any      `json:"answer"` // a text or a number
	Evidence []string `json:"evidence"`
	Category int      `json:"category"`
}

func readLoCoMo(path string) (chats []Chat, err error) {
	var file []struct {
		ID           string                     `json:"sample_id"`
		QA           []personalQuestion         `json:"qa"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := readJSON(path, &file); err != nil {
		return nil, err
	}
	for _, sample := range file {
		c, err := readPersonal(sample.ID, sample.Conversation, sample.QA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		chats = append(chats, c)
	}
	return chats, nil
}

// readREALTALK leaves out questions whose evidence is in no message.
func readREALTALK(files []string) (chats []Chat, err error) {
	for _, name := range files {
		var sessions map[string]json.RawMessage
		var file struct {
			QA []personalQuestion `json:"qa"`
		}
		if err := errors.Join(readJSON(name, &sessions), readJSON(name, &file)); err != nil {
			return nil, err
		}
		c, err := readPersonal(strings.TrimSuffix(filepath.Base(name), ".json"), sessions, file.QA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.Questions = slices.DeleteFunc(c.Questions, func(q Question) bool { return len(q.Evidence) == 0 })
		chats = append(chats, c)
	}
	return chats, nil
}

// readPersonal takes both speakers for users, named as they are. What a picture
// shows stands in brackets after the text.
func readPersonal(name string, sessions map[string]json.RawMessage, questions []personalQuestion) (Chat, error) {
	c := Chat{Name: name}
	at := map[string]int{}
	for n := 1; sessions["session_"+strconv.Itoa(n)] != nil; n++ {
		var turns []struct {
			Speaker   string `json:"speaker"`
			Text      string `json:"text"`
			CleanText string `json:"clean_text"` // REALTALK's
			ID        string `json:"dia_id"`
			Caption   string `json:"blip_caption"`
		}
		if err := json.Unmarshal(sessions["session_"+strconv.Itoa(n)], &turns); err != nil {
			return c, fmt.Errorf("%s, session %d: %w", name, n, err)
		}
		for _, turn := range turns {
			at[turn.ID] = len(c.Messages)
			text := cmp.Or(turn.Text, turn.CleanText)
			if turn.Caption != "" {
				text += " [" + turn.Caption + "]"
			}
			c.Messages = append(c.Messages, Message{Role: "user", Name: turn.Speaker, Text: text})
		}
	}
	for _, qa := range questions {
		if len(qa.Evidence) == 0 {
			continue
		}
		q := Question{Kind: "category " + strconv.Itoa(qa.Category), Text: qa.Question, Evidence: map[int]bool{}}
		if qa.Answer != nil {
			q.Answer = fmt.Sprint(qa.Answer)
		}
		for _, evidence := range qa.Evidence {
			for _, id := range dialogID.FindAllStringSubmatch(evidence, -1) {
				if i, ok := at["D"+id[1]+":"+id[2]]; ok {
					q.Evidence[i] = true
				}
			}
		}
		c.Questions = append(c.Questions, q)
	}
	return c, nil
}

func readBEAM(dir string) (chats []Chat, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "chat.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no chats: a folder each, with chat.json and probing_questions/probing_questions.json (%w)", dir, os.ErrNotExist)
	}
	for _, name := range files {
		var batches []struct {
			Turns [][]struct {
				ID      int    `json:"id"`
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"turns"`
		}
		if err := readJSON(name, &batches); err != nil {
			return nil, err
		}
		c := Chat{Name: filepath.Base(filepath.Dir(name))}
		at := map[int]int{}
		for _, batch := range batches {
			for _, turn := range batch.Turns {
				for _, m := range turn {
					at[m.ID] = len(c.Messages)
					c.Messages = append(c.Messages, Message{Role: m.Role, Text: m.Content})
				}
			}
		}
		var kinds map[string][]struct {
			Question     string `json:"question"`
			Answer       string `json:"answer"`
			IdealAnswer  string `json:"ideal_answer"`
			IdealSummary string `json:"ideal_summary"`
			Source       any    `json:"source_chat_ids"`
		}
		if err := readJSON(filepath.Join(filepath.Dir(name), "probing_questions", "probing_questions.json"), &kinds); err != nil {
			return nil, err
		}
		for kind, questions := range kinds {
			for _, question := range questions {
				q := Question{Kind: kind, Text: question.Question, Answer: cmp.Or(question.Answer, question.IdealAnswer, question.IdealSummary), Evidence: map[int]bool{}}
				for _, id := range numbers(question.Source) {
					if i, ok := at[id]; ok {
						q.Evidence[i] = true
					}
				}
				if len(q.Evidence) > 0 {
					c.Questions = append(c.Questions, q)
				}
			}
		}
		slices.SortFunc(c.Questions, func(q, other Question) int {
			return slices.Compare([]byte(q.Kind+q.Text), []byte(other.Kind+other.Text))
		})
		chats = append(chats, c)
	}
	return chats, nil
}

// numbers gives all numbers in a JSON value, however deep they stand.
func numbers(v any) (all []int) {
	switch v := v.(type) {
	case float64:
		return []int{int(v)}
	case []any:
		for _, element := range v {
			all = append(all, numbers(element)...)
		}
	case map[string]any:
		for _, element := range v {
			all = append(all, numbers(element)...)
		}
	}
	return all
}

func readJSON(name string, into any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
