package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

func listBranches(r *Request) (Answer, error) {
	id, p, err := r.list()
	if err != nil {
		return nil, err
	}
	list, err := r.Store().Branches(r.Context(), id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func getTranscript(r *Request) (Answer, error) {
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	list, err := r.Store().Transcript(r.Context(), id, head, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func getTree(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	preview, err := parsePreview(r.Query("preview"))
	if err != nil {
		return nil, err
	}
	c, err := r.Store().Conversation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return treeAnswer{c, r.Store().Tree(r.Context(), id, preview)}, nil
}

// treeAnswer is the schema Tree, written node by node, so that a tree of any
// size takes no more memory than a small one.
type treeAnswer struct {
	conversation tree.Conversation
	nodes        iter.Seq2[tree.Node, error]
}

// Write writes the answer. An error before the first piece is sent becomes a
// problem. A later error cuts the connection (see Server.fail).
func (a treeAnswer) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, streamBuffer)
	var head *uuid.UUID
	if a.conversation.HeadID != uuid.Nil {
		head = &a.conversation.HeadID
	}
	headJSON, err := json.Marshal(head)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"conversation_id":"%s","head_id":%s,"data":[`, a.conversation.ID, headJSON)
	var node []byte
	for n, err := range a.nodes {
		if err != nil {
			return err
		}
		if len(node) > 0 {
			out.WriteByte(',')
		}
		node = n.AppendJSON(node[:0])
		if _, err := out.Write(node); err != nil {
			return err
		}
	}
	out.WriteString(`],"next_cursor":null}` + "\n")
	return out.Flush()
}
