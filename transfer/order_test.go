package transfer_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// What a program's file says of the order of its conversations comes in with them.
func TestOrderOfOtherPrograms(t *testing.T) {
	t.Parallel()
	const openwebui = `[{"id":"a","title":"T","archived":true,"pinned":true,"meta":{"tags":["wood"," two words ","wood",7]},"chat":{"history":{"currentId":"1","messages":{"1":{"id":"1","parentId":null,"role":"user","content":"Hi"}}}}}]`
	const chatgpt = `[{"conversation_id":"a","title":"T","create_time":1.0,%s"current_node":"1","mapping":{"1":{"id":"1","parent":null,"children":[],"message":{"id":"1","author":{"role":"user"},"create_time":1.0,"content":{"content_type":"text","parts":["Hi"]}}}}}]`
	for file, want := range map[string]string{
		openwebui: "{Archived:true Pinned:true Tags:[wood two words]}",
		fmt.Sprintf(chatgpt, `"is_archived":true,`):                     "{Archived:true Pinned:false Tags:[]}",
		fmt.Sprintf(chatgpt, `"is_starred":true,"is_archived":false,`):  "{Archived:false Pinned:true Tags:[]}",
		fmt.Sprintf(chatgpt, `"is_starred":null,"is_archived":"true",`): "{Archived:false Pinned:false Tags:[]}",
	} {
		var b formattest.Bundles
		report, err := transfer.Import(t.Context(), &b, bytes.NewReader([]byte(file)), transfer.Options{})
		if err != nil || len(b) != 1 {
			t.Errorf("%s: %d bundles, %v, %s", file, len(b), err, formattest.Notes(report))
		} else if got := fmt.Sprintf("%+v", b[0].Conversation.Order); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
