package prompt

import "strings"

// FilledHeadings stand above the sentences that are added to a summary for what it
// lacks, by its language. What the summary itself says is newer, and may correct them.
var FilledHeadings = map[string]string{
	"en": "Also said (what stands above holds where it differs)",
	"de": "Außerdem gesagt (im Zweifel gilt, was oben steht)",
	"fr": "Dit aussi (en cas de doute, le texte ci-dessus prime)",
	"es": "También se dijo (en caso de duda vale lo de arriba)",
	"it": "Detto anche (nel dubbio vale quanto sta sopra)",
	"pt": "Também foi dito (em caso de dúvida vale o texto acima)",
	"nl": "Ook gezegd (bij twijfel geldt wat hierboven staat)",
	"sv": "Sades också (vid tvekan gäller det som står ovan)",
	"pl": "Powiedziano też (w razie wątpliwości obowiązuje tekst wyżej)",
	"tr": "Ayrıca söylendi (çelişirse yukarıdaki geçerlidir)",
	"ru": "Также сказано (при расхождении верно то, что выше)",
	"zh": "此外提到（如有出入，以上文为准）",
	"ja": "その他の発言（食い違う場合は上の内容が優先）",
	"ko": "그 밖의 말 (다르면 위의 내용이 맞음)",
	"ar": "قيل أيضا (عند الاختلاف يعتمد ما سبق)",
}

// CutFilled parts a summary from the section at its end that was added to it; "" for
// no section.
func CutFilled(summary string) (text, filled string) {
	at := strings.LastIndex(summary, "\n## ")
	if at < 0 {
		return summary, ""
	}
	heading, _, _ := strings.Cut(summary[at+len("\n## "):], "\n")
	for _, known := range FilledHeadings {
		if heading == known {
			return strings.TrimRight(summary[:at], "\n"), summary[at:]
		}
	}
	return summary, ""
}
