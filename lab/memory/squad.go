package memory

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// readSQuAD reads a file in the form of SQuAD, in which XQuAD is published in twelve
// languages: paragraphs, and questions that words of one paragraph answer. All
// paragraphs make one chat with a message for each sentence. The evidence is the
// sentence in which the answer begins.
func readSQuAD(path string) ([]Chat, error) {
	var file struct {
		Data []struct {
			Paragraphs []struct {
				Context string `json:"context"`
				QAs     []struct {
					Question string `json:"question"`
					Answers  []struct {
						Text  string `json:"text"`
						Start int    `json:"answer_start"` // in characters
					} `json:"answers"`
				} `json:"qas"`
			} `json:"paragraphs"`
		} `json:"data"`
	}
	if err := readJSON(path, &file); err != nil {
		return nil, err
	}
	c := Chat{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
	for _, article := range file.Data {
		for _, p := range article.Paragraphs {
			first := len(c.Messages)
			ends := sentenceEnds([]rune(p.Context))
			begin := 0
			for _, end := range ends {
				c.Messages = append(c.Messages, Message{Role: "user", Text: string([]rune(p.Context)[begin:end])})
				begin = end
			}
			for _, qa := range p.QAs {
				if len(qa.Answers) == 0 {
					continue
				}
				answer := qa.Answers[0]
				i := 0
				for i < len(ends) && ends[i] <= answer.Start {
					i++
				}
				if i == len(ends) {
					return nil, fmt.Errorf("%s: the answer to %q begins at %d, after the paragraph's end", path, qa.Question, answer.Start)
				}
				c.Questions = append(c.Questions, Question{Kind: "sentences", Text: qa.Question, Answer: answer.Text, Evidence: map[int]bool{first + i: true}})
			}
		}
	}
	return []Chat{c}, nil
}

// sentenceEnds tells where each sentence of a text ends, in characters. The blank
// after a sentence belongs to it, and all blanks at the end belong to the last one.
func sentenceEnds(text []rune) (ends []int) {
	said := []rune(strings.TrimRightFunc(string(text), unicode.IsSpace))
	for i, r := range said {
		switch {
		case i+1 == len(said):
			ends = append(ends, len(text))
		case strings.ContainsRune("。！？", r):
			ends = append(ends, i+1)
		case unicode.IsSpace(r) && i > 0 && strings.ContainsRune(".!?।؟", said[i-1]):
			ends = append(ends, i+1)
		}
	}
	return ends
}
