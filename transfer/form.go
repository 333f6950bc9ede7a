package transfer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/llamacpp"
	"github.com/coppice-chat/coppice/transfer/format/markdown"
	"github.com/coppice-chat/coppice/transfer/format/messages"
	"github.com/coppice-chat/coppice/transfer/format/sillytavern"
	"github.com/coppice-chat/coppice/tree"
)

// A Form is a kind of file that a conversation is written as. Only "jsonl" loses
// nothing; in the others, the names of pictures and files stand in for them.
type Form struct {
	Name        string
	Extension   string // of the file's name, without the dot
	ContentType string
	Branch      bool // it holds one branch; else every branch
	Single      bool // one file holds one conversation; else files may be put together
	write       func(context.Context, *tree.Store, tree.Conversation, uuid.UUID, io.Writer) error
}

const jsonLines = "application/jsonl"

// forms are in the order in which a person is told them.
var forms = []Form{
	{Name: "jsonl", Extension: "jsonl", ContentType: jsonLines,
		write: func(ctx context.Context, s *tree.Store, c tree.Conversation, _ uuid.UUID, w io.Writer) error {
			return Export(ctx, s, c.ID, w)
		}},
	{Name: "markdown", Extension: "md", ContentType: "text/markdown; charset=utf-8", Branch: true,
		write: func(ctx context.Context, s *tree.Store, c tree.Conversation, head uuid.UUID, w io.Writer) error {
			return markdown.Write(w, c, branchOf(ctx, s, c, head))
		}},
	{Name: "messages", Extension: "jsonl", ContentType: jsonLines, Branch: true,
		write: func(ctx context.Context, s *tree.Store, c tree.Conversation, head uuid.UUID, w io.Writer) error {
			return messages.Write(w, c, branchOf(ctx, s, c, head))
		}},
	{Name: "sillytavern", Extension: "jsonl", ContentType: jsonLines, Branch: true, Single: true,
		write: func(ctx context.Context, s *tree.Store, c tree.Conversation, head uuid.UUID, w io.Writer) error {
			return sillytavern.Write(w, c, versions(ctx, s, c, head))
		}},
	{Name: "llama.cpp", Extension: "json", ContentType: "application/json", Single: true,
		write: func(ctx context.Context, s *tree.Store, c tree.Conversation, _ uuid.UUID, w io.Writer) error {
			c, nodes, err := s.Export(ctx, c.ID)
			if err != nil {
				return err
			}
			return llamacpp.Write(w, c, s.Tree(ctx, c.ID, 0), nodes)
		}},
}

// FormNames lists the names of the forms of which keep is true, as "a, b or c".
func FormNames(keep func(Form) bool) string {
	var names []string
	for _, f := range forms {
		if keep(f) {
			names = append(names, f.Name)
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// FormNamed returns the form of that name, and whether there is one.
func FormNamed(name string) (Form, bool) {
	i := slices.IndexFunc(forms, func(f Form) bool { return f.Name == name })
	if i < 0 {
		return Form{}, false
	}
	return forms[i], true
}

// Write writes a conversation: the branch that ends in head, where the form holds
// one. A head of uuid.Nil is the active one.
func (f Form) Write(ctx context.Context, from *tree.Store, c tree.Conversation, head uuid.UUID, w io.Writer) error {
	return f.write(ctx, from, c, cmp.Or(head, c.HeadID), w)
}

// FileName names a file by the day on which the conversation began and by its title:
// "2026-01-05 Glue.md". It has no character that a file system refuses. A conversation
// without a title has its id there.
func (f Form) FileName(c tree.Conversation) string {
	title := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(c.Title, ""))
	const most = 100 // bytes, of the 255 that file systems allow
	title = strings.Trim(format.CutEnd(strings.Join(strings.Fields(title), " "), most), " .")
	return fmt.Sprintf("%s %s.%s", c.CreatedAt.UTC().Format("2006-01-02"), cmp.Or(title, c.ID.String()), f.Extension)
}

// branchOf streams a branch; one of a conversation without messages is empty.
func branchOf(ctx context.Context, s *tree.Store, c tree.Conversation, head uuid.UUID) iter.Seq2[tree.Message, error] {
	if head == uuid.Nil {
		return func(func(tree.Message, error) bool) {}
	}
	return s.Branch(ctx, c.ID, head, 0)
}

// versions gives each message of a branch with its siblings, in their order. It reads the
// tree's ids first, and then each body once.
func versions(ctx context.Context, s *tree.Store, c tree.Conversation, head uuid.UUID) iter.Seq2[sillytavern.Versions, error] {
	return func(yield func(sillytavern.Versions, error) bool) {
		above, below := map[uuid.UUID]uuid.UUID{}, map[uuid.UUID][]sibling{}
		for n, err := range s.Tree(ctx, c.ID, 0) {
			if err != nil {
				yield(sillytavern.Versions{}, err)
				return
			}
			if n.Kind == tree.KindMessage {
				above[n.ID], below[n.ParentID] = n.ParentID, append(below[n.ParentID], sibling{n.ID, n.Index})
			}
		}
		var path []uuid.UUID
		for id := head; id != uuid.Nil; id = above[id] {
			path = append(path, id)
		}
		for _, id := range slices.Backward(path) {
			ids := []uuid.UUID{id}
			if all := below[above[id]]; len(all) > 1 {
				slices.SortFunc(all, func(a, b sibling) int { return cmp.Compare(a.index, b.index) })
				ids = ids[:0]
				for _, one := range all {
					ids = append(ids, one.id)
				}
			}
			all, err := s.Messages(ctx, c.ID, ids)
			if !yield(sillytavern.Versions{All: all, Chosen: id}, err) || err != nil {
				return
			}
		}
	}
}

type sibling struct {
	id    uuid.UUID
	index int
}
