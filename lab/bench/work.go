package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// append measures appends of 1, 8 and 32 writers, each to a conversation of its own.
func (r *run) append(ctx context.Context) error {
	const length, text = 200, "A message of some length, as people write them to a model: neither a word nor a page."
	body := fmt.Appendf(nil, `{"role":"user","content":%q}`, text) // as the server writes it
	at, err := r.planter().line(ctx, length)
	if err != nil {
		return err
	}
	parent, id := uuid.Nil, at.head
	trips, err := r.record(ctx, func(store *tree.Store) error {
		parent, id = id, uuid.Must(uuid.NewV7())
		_, err := store.Append(ctx, at.id, parent, tree.NewMessage{ID: id, Message: chat.Read(body)})
		return err
	})
	if err != nil {
		return err
	}
	conversation := at.id
	type way struct {
		name  string
		adder func() adder // for each writer
	}
	overHTTP := func(name, addr string) way {
		return way{name, func() adder {
			c := &client{addr: addr}
			return func(_ context.Context, at line, id uuid.UUID) (int, error) {
				request := fmt.Appendf(nil, `{"id":%q,"parent_id":%q,"role":"user","content":%q}`, id, at.head, text)
				answer, err := c.do("POST", "/v1/conversations/"+at.id.String()+"/messages", request, http.StatusCreated)
				return len(answer), err
			}
		}}
	}
	ways := []way{overHTTP(nameServer, r.addr), {nameFloor, func() adder {
		return func(ctx context.Context, at line, new uuid.UUID) (int, error) {
			return send(ctx, r.pool, with(trips, map[uuid.UUID]uuid.UUID{conversation: at.id, parent: at.head, id: new}), nil)
		}
	}}}
	if r.before != "" {
		ways = append(ways, overHTTP(nameBefore, r.before))
	}
	for _, writers := range []int{1, 8, 32} {
		var variants []variant
		for _, way := range ways {
			v, err := r.appends(ctx, way.name, length, writers, way.adder)
			if err != nil {
				return err
			}
			variants = append(variants, v)
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
		if err := r.add(r.compare(ctx, fmt.Sprintf("append of %d bytes, writers: %d", len(text), writers), variants...)); err != nil {
			return err
		}
	}
	return nil
}

// An adder stores a message below the head of a line.
type adder func(ctx context.Context, at line, id uuid.UUID) (bytes int, err error)

// appends returns the variant of appends. What it shows is a stored row.
func (r *run) appends(ctx context.Context, name string, length, writers int, newAdder func() adder) (variant, error) {
	v := variant{name: name}
	var first *line
	for range writers {
		at, err := r.planter().line(ctx, length)
		if err != nil {
			return v, err
		}
		if first == nil {
			first = &at
		}
		add := newAdder()
		v.jobs = append(v.jobs, func(ctx context.Context) (int, error) {
			id := uuid.Must(uuid.NewV7())
			n, err := add(ctx, at, id)
			at.head = id
			return n, err
		})
	}
	v.shows = func(ctx context.Context) ([]string, error) {
		if _, err := v.jobs[0](ctx); err != nil {
			return nil, err
		}
		var row string
		err := r.pool.QueryRow(ctx, `select concat_ws(' ', kind, role, depth, tokens, path_tokens, sibling_index, pinned, metadata, body)
			from nodes where conversation_id = $1 and id = $2`, first.id, first.head).Scan(&row)
		return []string{row}, err
	}
	return v, nil
}

// context measures contexts of branches of which a summary folds all but a tail.
func (r *run) context(ctx context.Context) error {
	folded, tails := 1000, []int{50, 200, 600}
	if r.Quick {
		folded, tails = 200, []int{6, 20}
	}
	for _, tail := range tails {
		at, err := r.planter().line(ctx, folded+tail)
		if err != nil {
			return err
		}
		branch := fmt.Sprintf("/v1/conversations/%s/branches/%s/", at.id, at.head)
		answer, err := (&client{addr: r.addr}).do("POST", branch+"compactions", fmt.Appendf(nil, `{"keep_recent_messages":%d}`, tail), http.StatusCreated)
		if err != nil {
			return err
		}
		var made struct{ Outcome, Reason string }
		if err := json.Unmarshal(answer, &made); err != nil || made.Outcome != "saved" {
			return fmt.Errorf("the branch was not compacted: %s: %s (%v)", made.Outcome, made.Reason, err)
		}
		trips, err := r.record(ctx, func(store *tree.Store) error {
			service, err := summarize.New(store, summarize.Config{})
			if err == nil {
				_, err = service.Context(ctx, at.id, at.head, summarize.Window{})
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
		shown := func(answer []byte) ([]string, error) {
			var c struct{ Messages []json.RawMessage }
			err := json.Unmarshal(answer, &c)
			var texts []string
			for _, m := range c.Messages {
				if !bytes.Equal(m, chat.Acknowledgment()) { // which no row holds
					texts = append(texts, string(m))
				}
			}
			return texts, err
		}
		floor := r.floor([][]trip{trips}, "GetView", func(_ int, all []found) (texts []string) {
			for _, m := range all {
				texts = append(texts, m.body)
			}
			return texts
		})
		if err := r.reads(ctx, fmt.Sprintf("context, tail of %d messages", tail), []string{branch + "context"}, shown, floor); err != nil {
			return err
		}
	}
	return nil
}

// search measures searches for common and rare words, in one conversation and in
// all of a tenant's.
func (r *run) search(ctx context.Context) error {
	const length = 100
	p := r.planter()
	at, err := p.line(ctx, length) // has the rare words
	for planted := length; planted < r.Messages && err == nil; planted += length {
		_, err = p.line(ctx, length)
	}
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	var common []string
	for rank := 2; rank < 12; rank++ {
		common = append(common, word(rank))
	}
	for _, words := range []struct {
		name string
		all  []string
	}{{"common", common}, {"rare", p.rare}} {
		for _, in := range []uuid.UUID{uuid.Nil, at.id} {
			where, suffix := fmt.Sprintf("%d messages", r.Messages), ""
			if in != uuid.Nil {
				where, suffix = "a conversation of them", "&conversation_id="+in.String()
			}
			var paths []string
			var reads [][]trip
			for _, word := range words.all {
				query := `"` + word + `"` // found as a whole word
				paths = append(paths, "/v1/search?query="+url.QueryEscape(query)+suffix)
				service := search.New(0)
				trips, err := r.record(ctx, func(store *tree.Store) error {
					_, err := service.Messages(ctx, store, query, search.Within{ConversationID: in}, tree.Paging{})
					if err == nil && in == uuid.Nil { // as the server does
						_, err = service.Titles(ctx, store, query)
					}
					return err
				})
				if err != nil {
					return err
				}
				reads = append(reads, trips)
			}
			shown := func(answer []byte) (texts []string, err error) {
				var hits struct {
					Data []struct{ Message struct{ Content string } }
				}
				err = json.Unmarshal(answer, &hits)
				for _, hit := range hits.Data {
					texts = append(texts, hit.Message.Content)
				}
				return texts, err
			}
			// The rows have no order, some lack the word, and one more than a page says
			// that there is a next page. Ids begin with the time.
			floor := r.floor(reads, "DescribeHits", func(nth int, all []found) (texts []string) {
				slices.SortFunc(all, func(a, b found) int { return strings.Compare(b.id, a.id) })
				for _, m := range all {
					var said struct{ Content string }
					_ = json.Unmarshal([]byte(m.body), &said) // what isn't JSON has no content, which the comparison shows
					if slices.Contains(strings.FieldsFunc(said.Content, notLetter), words.all[nth]) {
						texts = append(texts, said.Content)
					}
				}
				return texts[:min(len(texts), tree.DefaultPage)]
			})
			if err := r.reads(ctx, fmt.Sprintf("search of %s words in %s", words.name, where), paths, shown, floor); err != nil {
				return err
			}
		}
	}
	return nil
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// reads compares reads of the servers with their floor.
func (r *run) reads(ctx context.Context, name string, paths []string, shown func([]byte) ([]string, error), floor variant) error {
	variants := []variant{get(nameServer, r.addr, paths, shown), floor}
	if r.before != "" {
		variants = append(variants, get(nameBefore, r.before, paths, shown))
	}
	return r.add(r.compare(ctx, name, variants...))
}
