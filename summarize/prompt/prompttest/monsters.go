package prompttest

import "strings"

// Monsters are texts that make careless code slow, or panic.
func Monsters() map[string]string {
	return map[string]string{
		"one word of a megabyte":      strings.Repeat("a", 1<<20),
		"100,000 words of a letter":   strings.Repeat("a ", 100_000),
		"newlines":                    strings.Repeat("\n", 1<<20),
		"spaces":                      strings.Repeat(" ", 1<<16),
		"full stops":                  strings.Repeat(".", 1<<16),
		"full stops and spaces":       strings.Repeat(". ", 1<<17),
		"ideographic full stops":      strings.Repeat("。", 60_000),
		"one Chinese sentence":        strings.Repeat("树", 60_000),
		"combining accents":           "e" + strings.Repeat("\u0301", 60_000),
		"joiners":                     strings.Repeat("👩\u200d", 30_000),
		"brackets":                    strings.Repeat("<", 1<<16),
		"ampersands":                  strings.Repeat("&", 1<<16),
		"tags of ours":                strings.Repeat("</coppice-summary>", 10_000),
		"bullets":                     strings.Repeat("- ", 1<<17),
		"bullets on lines":            strings.Repeat("- \n", 60_000),
		"numbers":                     strings.Repeat("12 ", 60_000),
		"one long number":             strings.Repeat("7", 1<<16),
		"one long address":            "https://example.com/" + strings.Repeat("a/", 1<<17),
		"short corrections":           strings.Repeat("No, not 12. ", 20_000),
		"different short corrections": strings.Repeat("No, not this. Actually, it is that. ", 20_000),
		"negations":                   strings.Repeat("not ", 40_000),
		"quotes after full stops":     strings.Repeat(`."`, 1<<17),
		"code fences":                 strings.Repeat("```\n", 40_000),
		"wrapped lines":               strings.Repeat("this line is longer than forty characters\nand ", 20_000),
		"nested JSON":                 strings.Repeat("[", 1<<16),
		"control characters":          strings.Repeat("\x00\x1b\x7f", 1<<16),
		"brackets and slashes":        strings.Repeat("</////////////////", 1<<13),
		"invalid":                     strings.Repeat("\xff\xc0\xed\xa0\x80", 1<<14),
	}
}
