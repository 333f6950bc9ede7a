package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// maxTagCounts is how many tags Tags returns.
const maxTagCounts = 1000

// Tags returns the tags of the conversations that aren't archived, or of those that
// are, the most used first. It costs the conversations that have tags.
func (s *Store) Tags(ctx context.Context, archived bool) (_ []TagCount, err error) {
	defer db.Wrap(&err, "tree.Tags")
	rows, err := s.q.ListTags(ctx, db.ListTagsParams{TenantID: s.tenant, Reader: s.reader, Archived: archived, RowLimit: maxTagCounts})
	out := make([]TagCount, len(rows))
	for i, row := range rows {
		out[i] = TagCount(row)
	}
	return out, err
}

// checkTags checks all tags of a conversation.
func checkTags(tags []string) error {
	if len(tags) > MaxTags {
		return fault.New(fault.Invalid, "too_many_tags", "tags", "It has %d tags, and %d is the most.", len(tags), MaxTags)
	}
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		if err := checkTag(tag, field); err != nil {
			return err
		}
		if slices.Contains(tags[:i], tag) {
			return fault.New(fault.Invalid, "invalid_tag", field, "The tag stands twice. Send it once.")
		}
	}
	return nil
}

func checkTag(tag, field string) error {
	if tag == "" || strings.TrimSpace(tag) != tag {
		return fault.New(fault.Invalid, "invalid_tag", field, "A tag has one character at least, and no space at its ends.")
	}
	if len(tag) > MaxTagBytes {
		return fault.New(fault.TooLarge, "tag_too_large", field, "It has %d bytes, and %d is the most.", len(tag), MaxTagBytes)
	}
	return checkText(tag, field, MaxTagBytes)
}

func toBool(b *bool) pgtype.Bool {
	if b == nil {
		return pgtype.Bool{}
	}
	return pgtype.Bool{Bool: *b, Valid: true}
}
