package server

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

func compareBranches(r *Request) (Answer, error) {
	id, p, err := r.list()
	if err != nil {
		return nil, err
	}
	var heads [2]uuid.UUID
	for i, name := range []string{"left", "right"} {
		value, err := r.needs(name)
		if err != nil {
			return nil, err
		}
		if value == "active" {
			continue
		}
		if heads[i], err = parseID(value, name); err != nil {
			return nil, err
		}
	}
	c, err := r.Store().Compare(r.Context(), id, heads[0], heads[1], p.Limit)
	if err != nil {
		return nil, err
	}
	body := fmt.Appendf(nil, `{"conversation_id":"%s","ancestor_id":`, id)
	body = append(tree.AppendID(body, c.AncestorID), `,"left":`...)
	if body, err = r.server.appendSide(body, c.Left); err != nil {
		return nil, err
	}
	if body, err = r.server.appendSide(append(body, `,"right":`...), c.Right); err != nil {
		return nil, err
	}
	return answer{status: http.StatusOK, body: append(body, '}')}, nil
}

// appendSide appends the schema ComparedSide.
func (s *Server) appendSide(dst []byte, side tree.Side) ([]byte, error) {
	replies, err := chat.Marshal(s.price(side.Replies))
	if err != nil {
		return nil, err
	}
	next := "null"
	if side.Page.Next != "" {
		next = `"` + side.Page.Next + `"` // base64url, which needs no escape
	}
	dst = fmt.Appendf(dst, `{"head_id":"%s","messages":%d,"tokens":%d,"replies":%s,"data":`, side.HeadID, side.Messages, side.Tokens, replies)
	dst, err = appendList(dst, side.Page.Data)
	return append(append(append(dst, `,"next_cursor":`...), next...), '}'), err
}
