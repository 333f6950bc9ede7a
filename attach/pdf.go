package attach

import (
	"context"

	"github.com/coppice-chat/coppice/fault"
)

func pdfText(context.Context, []byte) (string, error) {
	return "", fault.New(fault.Invalid, "unsupported_attachment", "", "PDF files can't be read yet.")
}
