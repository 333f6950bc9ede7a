package openai

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

type listed string

func (l listed) ItemID() string { return string(l) }

func inOrder(items []listed) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// TestPagesAreTheList holds that pages of any size, one after the other as a
// client asks for them, are the whole list.
func TestPagesAreTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all, got []listed
		for i := range rapid.IntRange(0, 30).Draw(t, "items") {
			all = append(all, listed(fmt.Sprint("msg_", i)))
		}
		p := wire.Page{Limit: rapid.IntRange(1, 12).Draw(t, "limit")}
		bytes := rapid.SampledFrom([]int{0, tree.MaxPageBytes/3 + 1}).Draw(t, "bytes") // of each item
		most := p.Limit
		if bytes > 0 {
			most = min(most, 3)
		}
		for range len(all) + 1 {
			page, err := cut(p, inOrder(all), func(listed) int { return bytes })
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Data) > most || page.HasMore && len(page.Data) != most {
				t.Fatalf("a page of %d: %+v", most, page)
			}
			got = append(got, page.Data...)
			if len(page.Data) > 0 && (*page.FirstID != string(page.Data[0]) || *page.LastID != string(got[len(got)-1])) {
				t.Fatalf("%v of %v", page, all)
			}
			if !page.HasMore {
				break
			}
			p.After = *page.LastID
		}
		if fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("the pages have %v, the list %v", got, all)
		}
	})
}

func TestPage(t *testing.T) {
	t.Parallel()
	if _, err := cut(wire.Page{Limit: 2, After: "msg_9"}, inOrder([]listed{"msg_1"}), func(listed) int { return 0 }); !errors.Is(err, fault.Invalid) || fault.Of(err).Field != "after" {
		t.Errorf("after an unknown item: %v", err)
	}
	broken := errors.New("broken")
	if _, err := cut(wire.Page{Limit: 2}, func(yield func(listed, error) bool) { yield("", broken) }, func(listed) int { return 0 }); err != broken {
		t.Errorf("%v", err)
	}
	if got := string(wire.Marshal(wire.NewList[wire.Item](nil, false))); got != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}` {
		t.Error(got)
	}
}
