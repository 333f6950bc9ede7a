// Package pdftest makes PDF files for tests.
package pdftest

import (
	"bytes"
	"fmt"
	"strings"
)

// Pages is a PDF whose pages say these texts, line by line. An empty text makes an
// empty page.
func Pages(texts ...string) []byte {
	var kids []string
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"}
	for _, text := range texts {
		content := Stream("", "BT /F 12 Tf 14 TL 50 750 Td "+lines(text)+"ET")
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>", len(objects)+2), content)
		kids = append(kids, fmt.Sprintf("%d 0 R", len(objects)-1))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(kids))
	return File(objects...)
}

// lines shows lines of text, one below the other. Characters beyond Latin-1 become
// question marks.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteByte('<')
		for _, c := range strings.TrimSuffix(line, "\n") {
			if c > 0xFF {
				c = '?'
			}
			fmt.Fprintf(&b, "%02X", c)
		}
		b.WriteString("> Tj T* ")
	}
	return b.String()
}

// Stream is an object with content. more goes into its dictionary.
func Stream(more, content string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), more, content)
}

// File is a PDF of these objects, numbered from 1. The first is the catalog.
func File(objects ...string) []byte { return FileWith("", objects...) }

// FileWith is File with more in the trailer.
func FileWith(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	offsets := make([]int, len(objects))
	for i, object := range objects {
		offsets[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, start)
	return b.Bytes()
}
