package mend

import "github.com/coppice-chat/coppice/transfer/format"

// What tests of a package of their own see.
var (
	MendBody  = mendBody
	MendExtra = mendExtra
	MendTags  = mendTags
	MendTitle = mendTitle
	MessageID = messageID
)

func (d defect) Kind() format.Kind { return d.kind }

func (d defect) String() string { return string(d.kind) + ": " + d.detail }
