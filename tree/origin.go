package tree

import (
	"encoding/json"
	"strconv"
	"time"
)

// imported is the origin of a summary that comes in with an import, from what
// the file says of an earlier one.
func imported(before *Origin, format string, at time.Time) *Origin {
	o := &Origin{ImportedAt: at, Format: format}
	if before != nil && !before.ImportedAt.IsZero() {
		if o.FirstImportedAt = before.FirstImportedAt; o.FirstImportedAt == nil {
			o.FirstImportedAt = &before.ImportedAt
		}
	}
	return o
}

// merged is the origin of a summary that was written here from one with an
// origin.
func (o *Origin) merged() *Origin {
	if o == nil {
		return nil
	}
	m := *o
	m.Merged = true
	return &m
}

// column is the origin as it is stored.
func (o *Origin) column() json.RawMessage {
	if o == nil {
		return nil
	}
	return o.AppendJSON(nil)
}

func fromOrigin(column json.RawMessage) *Origin {
	if column == nil {
		return nil
	}
	o := &Origin{}
	_ = json.Unmarshal(column, o) // which column wrote
	return o
}

// AppendJSON appends {imported_at, format, first_imported_at, merged}, or null.
func (o *Origin) AppendJSON(dst []byte) []byte {
	if o == nil {
		return append(dst, "null"...)
	}
	dst = appendTime(dst, `{"imported_at":`, o.ImportedAt)
	dst = appendString(dst, `,"format":`, o.Format)
	if o.FirstImportedAt == nil {
		dst = append(dst, `,"first_imported_at":null`...)
	} else {
		dst = appendTime(dst, `,"first_imported_at":`, *o.FirstImportedAt)
	}
	dst = strconv.AppendBool(append(dst, `,"merged":`...), o.Merged)
	return append(dst, '}')
}
