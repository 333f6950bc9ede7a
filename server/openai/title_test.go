package openai_test

import (
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// A conversation that a chat completion begins is listed under what the user said
// first, as one that a response begins.
func TestTitles(t *testing.T) {
	t.Parallel()
	a := setup{script: []llmtest.Behaviour{llmtest.Answer("A wood."), llmtest.Answer("A wood.")}}.serve(t)
	a.complete("acme", `{"model":"wood","store":true,"messages":[{"role":"system","content":"Mind."},{"role":"user","content":"What is  a coppice?\nBe brief."}]}`)
	a.create(`{"model":"wood","input":"What is a grove?"}`)
	list, err := a.store.ForTenant("acme").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, c := range list.Data {
		titles = append(titles, c.Title)
	}
	if len(titles) != 2 || titles[0] != "What is a grove?" || titles[1] != "What is a coppice? Be brief." {
		t.Errorf("%q", titles)
	}
}
