// Package testdata holds small fixtures, written by hand, in every format that
// Coppice imports. Tests read them as files; the one that the program shows to
// newcomers is embedded here.
package testdata

import _ "embed"

// Demo is a branched conversation as a ChatGPT export: an edited question,
// regenerated answers, and two ways on from one of them.
//
//go:embed demo.json
var Demo []byte
