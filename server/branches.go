package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

func (h handlers) ListBranches(ctx context.Context, r ListBranchesRequestObject) (ListBranchesResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Branches(ctx, id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func (h handlers) GetTranscript(ctx context.Context, r GetTranscriptRequestObject) (GetTranscriptResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	head, err := parseHead(r.HeadID)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Transcript(ctx, id, head, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func (h handlers) GetTree(ctx context.Context, r GetTreeRequestObject) (GetTreeResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	preview, err := parsePreview(r.Params.Preview)
	if err != nil {
		return nil, err
	}
	store := h.store(ctx)
	c, err := store.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	return treeAnswer{c, store.Tree(ctx, id, preview)}, nil
}

// treeAnswer is the schema Tree, written node by node, so that a tree of any
// size takes no more memory than a small one.
type treeAnswer struct {
	conversation tree.Conversation
	nodes        iter.Seq2[tree.Node, error]
}

// VisitGetTreeResponse writes the answer. An error before the first piece is
// out becomes a problem; after it, the connection is cut (see Server.fail).
func (a treeAnswer) VisitGetTreeResponse(w http.ResponseWriter) error {
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
