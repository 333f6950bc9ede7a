package normalize

import (
	"encoding/json"
	"errors"

	"github.com/coppice-chat/coppice/transfer/format"
)

// What tests of a package of their own see.
var (
	NormalizeBody  = normalizeBody
	NormalizeExtra = normalizeExtra
	NormalizeTags  = normalizeTags
	NormalizeTitle = normalizeTitle
	MessageID      = messageID
)

func (d defect) Kind() format.Kind { return d.kind }

func (d defect) String() string { return string(d.kind) + ": " + d.detail }

func NormalizeOwnBody(raw json.RawMessage) (json.RawMessage, error) {
	body, _, _, failed := normalize(raw, true)
	if failed != nil {
		return nil, errors.New(failed.String())
	}
	return body, nil
}
