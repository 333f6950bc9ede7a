package normalize

import "github.com/coppice-chat/coppice/transfer/format"

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
