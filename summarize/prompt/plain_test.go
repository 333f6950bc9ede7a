package prompt

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPlainLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"What is a coppice?":                       "What is a coppice?",
		"**What** is a *coppice*?":                 "What is a coppice?",
		"What is __a big__ _coppice_?":             "What is a big coppice?",
		"***All*** of ~~that~~ this":               "All of that this",
		"*one* *two* *three*":                      "one two three",
		"**_both_**":                               "both",
		"**Title:** hedges":                        "Title: hedges",
		"这是**重点**吗":                                "这是重点吗",
		"“**A hedge**”":                            "“A hedge”",
		"Why does `go vet` fail?":                  "Why does go vet fail?",
		"Why is ``a ` b`` here?":                   "Why is a ` b here?",
		"What does `*args` or `**kw` do?":          "What does *args or **kw do?",
		"An open ` stays":                          "An open ` stays",
		"# Notes":                                  "Notes",
		"### Notes ###":                            "Notes",
		"> - [ ] **mow** the lawn":                 "mow the lawn",
		"* one thing":                              "one thing",
		"See [the docs](https://example.org/a_b)":  "See the docs",
		"[![logo](a.png)](https://example.org)":    "logo",
		"See [this](<a.html> \"This\").":           "See this.",
		"A [hazel](https://example.org/Hazel_(x))": "A hazel",
		"**Why does `*x*` fail?**":                 "Why does *x* fail?",
		"**https://example.org/**":                 "https://example.org/",
		"[](https://example.org/x)":                "https://example.org/x",
		"<https://example.org/a_b_c> is down":      "https://example.org/a_b_c is down",
		`A \*star\* and \_one\_`:                   "A *star* and _one_",
		// What only looks like a mark stays.
		"2 * 3 * 4, 2*3*4 and 2**3**4":            "2 * 3 * 4, 2*3*4 and 2**3**4",
		"snake_case_name and __init__":            "snake_case_name and __init__",
		"*args and **kwargs":                      "*args and **kwargs",
		"*.go and *.ts":                           "*.go and *.ts",
		"C# or F#? #1 is #hedges":                 "C# or F#? #1 is #hedges",
		"What does f[0](x) do with a[i][j]?":      "What does f[0](x) do with a[i][j]?",
		"https://example.org/a_b_c?x=*y*":         "https://example.org/a_b_c?x=*y*",
		"Is 5 > 3, and ~5 km or ~6?":              "Is 5 > 3, and ~5 km or ~6?",
		`Why is \(x_1\) and \[y_2\] not C:\temp?`: `Why is \(x_1\) and \[y_2\] not C:\temp?`,
		"1. First of all":                         "1. First of all",
		"-5 degrees":                              "-5 degrees",
		// Lines without a word.
		"":          "",
		"```go":     "",
		"~~~":       "",
		"---":       "",
		"***":       "",
		"## ":       "",
		"|:--|--:|": "",
	} {
		if got := PlainLine(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Whatever the line, nothing is added to it.
func TestPlainLineOfAnything(t *testing.T) {
	t.Parallel()
	marks := rapid.StringOf(rapid.SampledFrom([]rune("*_`#~[]()<>\\ !-ab:/.é")))
	rapid.Check(t, func(t *rapid.T) {
		line := marks.Draw(t, "line")
		if got := PlainLine(line); len(got) > len(line) || !utf8.ValidString(got) {
			t.Errorf("%q: %q", line, got)
		}
	})
}
