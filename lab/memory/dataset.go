// Package memory measures what is still known of a long conversation: whether
// recall finds the messages that hold the evidence for a question, and how much
// of the evidence a summary still holds.
//
// It reads LoCoMo (locomo10.json) and BEAM (a folder of chats, each with chat.json
// and probing_questions) in the forms in which they are published. The datasets are
// not part of the repository.
package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
	At   time.Time // zero where the dataset has none
}

// body is the message as a client sends it.
func (m Message) body() []byte {
	b := map[string]string{"role": m.Role, "content": cmp.Or(m.Text, ".")} // a message needs content
	if m.Name != "" {
		b["name"] = m.Name
	}
	raw, _ := json.Marshal(b) // strings always marshal
	return raw
}

// A Question has the messages that hold its evidence, by their index.
type Question struct {
	Kind     string
	Text     string
	Answer   string // "" where the dataset has none of a few words
	Evidence map[int]bool
}

// Read reads a dataset: LoCoMo's file, or the folder of BEAM's chats. With roles, the
// people of LoCoMo's chats have no names: the first is the user, and the other one the
// assistant.
func Read(path string, roles bool) ([]Chat, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readBEAM(path)
	}
	chats, err := readLoCoMo(path)
	for _, c := range chats {
		if !roles {
			break
		}
		for i := range c.Messages {
			if m := &c.Messages[i]; m.Name != c.Messages[0].Name {
				m.Role = "assistant"
			}
		}
		for i := range c.Messages {
			c.Messages[i].Name = ""
		}
	}
	return chats, err
}

var dialogID, digits = regexp.MustCompile(`D:?(\d+):(\d+)`), regexp.MustCompile(`\d+`)

// readLoCoMo reads both speakers as users with their names. The caption of a picture
// stands in brackets after the text. Questions whose evidence is in no message are left out.
func readLoCoMo(path string) (chats []Chat, err error) {
	var file []struct {
		ID string `json:"sample_id"`
		QA []struct {
			Question string          `json:"question"`
			Answer   json.RawMessage `json:"answer"` // a string or a number
			Evidence []string        `json:"evidence"`
			Category int             `json:"category"`
		} `json:"qa"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := readJSON(path, &file); err != nil {
		return nil, err
	}
	for _, sample := range file {
		c := Chat{Name: sample.ID}
		at := map[string]int{}
		for n := 1; sample.Conversation["session_"+strconv.Itoa(n)] != nil; n++ {
			day := strings.Trim(string(sample.Conversation["session_"+strconv.Itoa(n)+"_date_time"]), `"`)
			var turns []struct {
				Speaker string `json:"speaker"`
				Time    string `json:"date_time"`
				Text    string `json:"text"`
				ID      string `json:"dia_id"`
				Caption string `json:"blip_caption"`
			}
			if err := json.Unmarshal(sample.Conversation["session_"+strconv.Itoa(n)], &turns); err != nil {
				return nil, fmt.Errorf("%s: %s, session %d: %w", path, c.Name, n, err)
			}
			for _, turn := range turns {
				at[turn.ID] = len(c.Messages)
				if turn.Caption != "" {
					turn.Text += " [" + turn.Caption + "]"
				}
				when := timeOf(cmp.Or(turn.Time, day))
				c.Messages = append(c.Messages, Message{Role: "user", Name: turn.Speaker, Text: turn.Text, At: when})
			}
		}
		for _, qa := range sample.QA {
			q := Question{Kind: "category " + strconv.Itoa(qa.Category), Text: qa.Question, Answer: string(qa.Answer), Evidence: map[int]bool{}}
			for _, evidence := range qa.Evidence {
				for _, id := range dialogID.FindAllStringSubmatch(evidence, -1) {
					if i, ok := at["D"+id[1]+":"+id[2]]; ok {
						q.Evidence[i] = true
					}
				}
			}
			if len(q.Evidence) > 0 {
				c.Questions = append(c.Questions, q)
			}
		}
		chats = append(chats, c)
	}
	return chats, nil
}

// timeOf reads a time as LoCoMo, REALTALK and BEAM write it; zero for another text.
func timeOf(text string) time.Time {
	for _, layout := range []string{"3:04 pm on 2 January, 2006", "02.01.2006, 15:04:05", "January-02-2006"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

func readBEAM(dir string) (chats []Chat, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "chat.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no chats: a folder each, with chat.json and probing_questions/probing_questions.json (%w)", dir, os.ErrNotExist)
	}
	for _, name := range files {
		var batches []struct {
			Turns [][]struct {
				ID      json.Number `json:"id"`
				Role    string      `json:"role"`
				Content string      `json:"content"`
				Day     string      `json:"time_anchor"` // of the first of a day
			} `json:"turns"`
		}
		if err := readJSON(name, &batches); err != nil {
			return nil, err
		}
		c := Chat{Name: filepath.Base(filepath.Dir(name))}
		at, day := map[string]int{}, time.Time{}
		for _, batch := range batches {
			for _, turn := range batch.Turns {
				for _, m := range turn {
					if m.Day != "" {
						day = timeOf(m.Day)
					}
					at[m.ID.String()] = len(c.Messages)
					c.Messages = append(c.Messages, Message{Role: m.Role, Text: m.Content, At: day})
				}
			}
		}
		var kinds map[string][]struct {
			Question string          `json:"question"`
			Source   json.RawMessage `json:"source_chat_ids"` // numbers, in lists and by name
		}
		if err := readJSON(filepath.Join(filepath.Dir(name), "probing_questions", "probing_questions.json"), &kinds); err != nil {
			return nil, err
		}
		for kind, questions := range kinds {
			for _, question := range questions {
				q := Question{Kind: kind, Text: question.Question, Evidence: map[int]bool{}}
				for _, id := range digits.FindAllString(string(question.Source), -1) {
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
