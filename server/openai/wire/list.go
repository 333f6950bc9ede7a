package wire

import (
	"net/url"
	"strconv"

	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// A List is a page of a list.
type List struct {
	Object  string  `json:"object"`
	Data    []Item  `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// NewList returns a page of a list.
func NewList(data []Item, more bool) List {
	l := List{Object: "list", Data: data, HasMore: more}
	if len(data) == 0 {
		l.Data = []Item{}
		return l
	}
	l.FirstID, l.LastID = &data[0].ID, &data[len(data)-1].ID
	return l
}

// A Page is the part of a list that a request asks for.
type Page struct {
	Limit     int
	Ascending bool
	After     string // id of the item before the first one; "" for none
}

// ParsePage reads the query of a list.
func ParsePage(query url.Values) (Page, error) {
	p := Page{Limit: 20, After: query.Get("after")}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return p, fault.New(fault.Invalid, sdk.CodeValue, "limit", "This must be a whole number between 1 and 100.")
		}
		p.Limit = n
	}
	switch order := query.Get("order"); order {
	case "asc":
		p.Ascending = true
	case "", "desc":
	default:
		return p, fault.New(fault.Invalid, sdk.CodeValue, "order", "This must be asc or desc.")
	}
	return p, nil
}
