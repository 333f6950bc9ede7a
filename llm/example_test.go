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

func ExampleOffline() {
	model := llm.Offline(0)
	answer, err := model.Complete(context.Background(), llm.Request{
		Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Hello?"}`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
	// Output:
	// I am the offline model: no language model is set up, so nobody understood this. I was given 1 message. You said: “Hello?”
}

// A server of one's own takes as much context as it was started with.
func ExampleFamilies_With() {
	families, err := llm.KnownFamilies().With(llm.Family{Prefix: "acme-7b", Window: 16_384})
	if err != nil {
		log.Fatal(err)
	}
	for _, model := range []string{"acme-7b-instruct", "openai/gpt-4o-mini"} {
		family, _ := families.Find(model)
		fmt.Println(model, family.Window)
	}
	// Output:
	// acme-7b-instruct 16384
	// openai/gpt-4o-mini 128000
}
