package fault_test

import (
	"errors"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// A program asks for the kind to decide what to do, and for the code to tell
// errors of one kind apart. Detail is for people.
func Example() {
	_, err := chat.Parse([]byte(`{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "weather"}}]}`))
	if errors.Is(err, fault.Invalid) {
		fmt.Println("The input must be fixed.")
	}
	var e *fault.Error
	if errors.As(err, &e) {
		fmt.Println("kind:  ", e.Kind)
		fmt.Println("code:  ", e.Code)
		fmt.Println("field: ", e.Field)
		fmt.Println("detail:", e.Detail)
	}
	// Output:
	// The input must be fixed.
	// kind:   invalid
	// code:   invalid_tool_calls
	// field:  tool_calls[0].id
	// detail: A tool call needs an id, by which its result names it.
}

// Wrap notes the call in the error's text and keeps all else.
func ExampleWrap() {
	find := func(id string) (err error) {
		defer fault.Wrap(&err, "shelf.Find(%q)", id)
		return fault.New(fault.NotFound, "book_not_found", "id", "There is no book with the id %s.", id)
	}
	err := find("b7")
	fmt.Println(err)
	fmt.Println(fault.Of(err).Reason())
	fmt.Println(fault.Of(err).Code)
	// Output:
	// shelf.Find("b7"): id: There is no book with the id b7.
	// id: There is no book with the id b7.
	// book_not_found
}
