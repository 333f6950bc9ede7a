package bench

import (
	"context"
	"fmt"

	"github.com/coppice-chat/coppice/summarize"
)

// ForksConfig says what [Forks] replays. The zero value generates chats as
// [DefaultForks] says, and reads no files.
type ForksConfig struct {
	DataDir string // folder of exports, in every format that package transfer reads; "" for none
	Chats   int    // to generate; 0 stands for 60
	Turns   int    // of the user's in each; 0 stands for 400
	Window  int    // max_context_tokens of a generated chat; 0 stands for 16,000
	Seed    uint64 // of what is generated
}
