package web_test

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-chat/coppice/internal/check"
)

// axeSource is axe-core, as `npm ci` puts it into node_modules.
var axeSource = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("node_modules/axe-core/axe.min.js") })

// parts are views of the page's parts. The others are variants of these, which axe-core,
// that takes a third of the browser's time, looks over in .ci/full.
var parts = []string{"chat", "compare-models", "context", "keys", "list", "map", "rendering", "search", "settings"}

// axe fails the test where axe-core finds what is serious or critical, by some
// rules or by all. Whatever it finds apart from that is logged.
func (b *tab) axe(view string, rules ...string) {
	b.t.Helper()
	if os.Getenv("COPPICE_TEST_LONG") == "" && !slices.Contains(parts, strings.TrimSuffix(strings.TrimSuffix(view, "-dark"), "-light")) {
		return
	}
	source, err := axeSource()
	if err != nil {
		check.Need(b.t, os.Getenv("COPPICE_REQUIRE_BROWSER") != "1",
			"axe-core isn't there. Run npm ci in web: %v", err)
		b.t.Logf("%s isn't looked over by axe-core, which isn't installed: run npm ci in web", view)
		return
	}
	if !eval[bool](b, `!!window.axe`) {
		eval[any](b, string(source)+"; null")
	}
	for _, finding := range eval[[]struct{ Impact, Text string }](b, axeRun, rules) {
		if finding.Impact == "serious" || finding.Impact == "critical" {
			b.t.Errorf("%s: axe: %s", view, finding.Text)
		} else {
			b.t.Logf("%s: axe: %s", view, finding.Text)
		}
	}
}

// axeRun waits for its turn: axe-core takes one view at a time. The frame that
// draws diagrams is left out, because nobody sees it.
const axeRun = `axe.run({ exclude: ['.diagram-frame'] }, { resultTypes: ['violations'], iframes: false, preload: false, ...($1 && { runOnly: $1 }) }).then(r => r.violations.map(v => ({
	impact: v.impact ?? '',
	text: v.impact + ' ' + v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 4).map(n => n.html.slice(0, 160)).join(' | '),
})))`
