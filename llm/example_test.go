package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/coppice-chat/coppice/llm"
)

// A model on the same machine, asked for a streamed answer.
func ExampleNewOpenAI() {
	model, err := llm.NewOpenAI(llm.OpenAIConfig{
		BaseURL:    "http://localhost:11434/v1",
		Model:      "llama3.2",
		HTTPClient: &http.Client{},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := model.Stream(ctx, llm.Request{
		Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Why are trees coppiced?"}`)},
	}, func(d llm.Delta) error {
		fmt.Print(d.Content)
		return nil
	})
	var failure *llm.Error
	switch {
	case errors.Is(err, llm.ErrRateLimited) && errors.As(err, &failure):
		fmt.Println("ask again after", failure.RetryAfter)
	case err != nil:
		fmt.Println(err, "and until then came:", answer.Text)
	}
}
