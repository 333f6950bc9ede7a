package openai

import (
	"iter"
	"net/url"
	"strconv"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A List is a page of a list.
type List[T Item] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// NewList returns a page of a list.
func NewList[T Item](data []T, more bool) List[T] {
	l := List[T]{Object: "list", Data: data, HasMore: more}
	if len(data) == 0 {
		l.Data = []T{}
		return l
	}
	first, last := data[0].ItemID(), data[len(data)-1].ItemID()
	l.FirstID, l.LastID = &first, &last
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
			return p, fault.New(fault.Invalid, codeValue, "limit", "This must be a whole number between 1 and 100.")
		}
		p.Limit = n
	}
	switch order := query.Get("order"); order {
	case "asc":
		p.Ascending = true
	case "", "desc":
	default:
		return p, fault.New(fault.Invalid, codeValue, "order", "This must be asc or desc.")
	}
	return p, nil
}

// cut gives the page that is asked for, of items that come in its order. It ends at
// its limit of items, or where their bytes come to tree.MaxPageBytes. It passes over
// all up to the item that is named After, and reads no further than it has to: the
// items may begin at any one before that.
func cut[T Item](p Page, items iter.Seq2[T, error], bytes func(T) int) (List[T], error) {
	var data []T
	found, taken := p.After == "", 0
	for item, err := range items {
		switch {
		case err != nil:
			return List[T]{}, err
		case !found:
			found = item.ItemID() == p.After
		case len(data) == p.Limit || taken >= tree.MaxPageBytes:
			return NewList(data, true), nil
		default:
			data = append(data, item)
			taken += bytes(item)
		}
	}
	if !found {
		return List[T]{}, fault.New(fault.Invalid, codeValue, "after", "The list has no item with id '%s'.", clipID(p.After))
	}
	return NewList(data, false), nil
}
