package format

import "crypto/sha256"

// An Attachment is a picture or file that stands in a file beside the messages
// that name it. Only Coppice's own format has them.
type Attachment struct {
	Hash  [sha256.Size]byte
	Name  string // of the file; "" for none
	Data  []byte
	Place string // in the file
	Taken int    // bytes of the file that it took
}
