package web_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// settings opens the settings of the open conversation, and waits until they were read.
func (b *tab) settings() {
	b.t.Helper()
	b.click(".branch-head .menu button", "Conversation")
	b.click("[role=menuitem]", "Prompt and settings")
	b.until(`document.querySelector('.settings textarea')?.matches(':read-write') && document.querySelector('.settings-effect')`)
}

// TestSettings has a field for each setting of contexts and compactions, with its
// meaning. The rare ones are behind "More", which opens by itself where one of them
// was set or can't stand.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := check.Must3(s.store.CreateConversation(t.Context(), tree.NewConversation{Title: "Settings"}))(t)
	question := s.append(c.ID, c.HeadID, "user", "What is a coppice?")
	answer := s.append(c.ID, question, "assistant", "A wood that is cut.")
	b := newTab(t, s, "/c/"+c.ID.String(), narrow...)
	b.until(`document.querySelector($1)`, row(answer))
	put := func(name, value string) {
		eval[any](b, `{
			const e = document.querySelector('.settings [name=' + $1 + ']')
			e.value = $2
			e.dispatchEvent(new Event('input', { bubbles: true }))
		}`, name, value)
	}
	stored := func() string {
		got := check.Must(s.store.Conversation(t.Context(), c.ID))(t)
		return string(got.Settings)
	}
	effect := func(text string) {
		b.until(`document.querySelector('.settings-effect').innerText.replaceAll(/\s+/g, ' ').includes($1)`, text)
	}

	b.settings()
	check.That(t, !eval[bool](b, `document.querySelector('.more-settings').open`),
		"the rare settings are open")
	var all map[string]any
	known, err := json.Marshal(summarize.Defaults())
	if err == nil {
		err = json.Unmarshal(known, &all)
	}
	check.NoError(t, err)
	want := slices.Sorted(maps.Keys(all))
	if got := eval[[]string](b, `[...document.querySelectorAll('.setting [name]')].map(e => e.name).sort()`); !slices.Equal(got, want) {
		t.Errorf("there are fields for %q, and settings %q", got, want)
	}
	if mute := eval[[]string](b, `[...document.querySelectorAll('.setting [name]')].filter(e => !(e.closest('.setting').querySelector('small')?.textContent || e.placeholder)).map(e => e.name)`); len(mute) > 0 {
		t.Errorf("no meaning is told of %q", mute)
	}
	b.view("settings")

	b.click(".more-settings summary", "More")
	b.until(`document.querySelector('.settings [name=digest]').checkVisibility()`)
	b.choose("[name=digest]", "never stands in")
	b.choose("[name=recall]", "may search what is folded")
	put("trigger_cap_tokens", "30000")
	put("keep_cap_tokens", "9000")
	put("keep_user_cap_tokens", "0")
	put("min_fold_messages", "6")
	put("min_fold_tokens", "50")
	put("anchor_slack_turns", "3")
	effect("when it passes about 30,000")
	effect("About 9,000 tokens at its end, and the last 4 messages in any case, then stay word for word.")
	b.click("dialog button", "Save")
	b.until(`!document.querySelector('dialog')`)
	const saved = `{"digest":"never","recall":true,"trigger_cap_tokens":30000,"keep_cap_tokens":9000,"keep_user_cap_tokens":0,"min_fold_messages":6,"min_fold_tokens":50,"anchor_slack_turns":3}`
	check.Equal(t, "stored", stored(), saved)

	// What was set shows. What is emptied is the server's again, and isn't taken for what was stored.
	b.settings()
	b.until(`document.querySelector('.more-settings').open`)
	if got := eval[string](b, `[...document.querySelectorAll('.setting [name]')].filter(e => e.value).map(e => e.name + '=' + e.value).join()`); got !=
		"recall=true,trigger_cap_tokens=30000,keep_cap_tokens=9000,keep_user_cap_tokens=0,min_fold_messages=6,min_fold_tokens=50,anchor_slack_turns=3,digest=never" {
		t.Errorf("shown are %s", got)
	}
	put("trigger_cap_tokens", "")
	effect("is the server’s once you save")
	put("trigger_cap_tokens", "30000")
	effect("when it passes about 30,000")

	// One that can't stand is shown, also where "More" was closed.
	put("min_fold_messages", "0")
	b.click(".more-settings summary", "More")
	b.until(`!document.querySelector('.more-settings').open`)
	b.click("dialog button", "Save")
	b.until(`document.querySelector('.settings [role=alert]')?.innerText.includes('It must be 1 or more')`)
	b.until(`document.querySelector('[name=min_fold_messages]').checkVisibility() && document.querySelector('[name=min_fold_messages]').ariaInvalid === 'true'`)
	b.audit("refused")
	check.Equal(t, "stored", stored(), saved)
	put("min_fold_messages", "")
	b.until(`!document.querySelector('.settings [role=alert], .settings [aria-invalid]')`)
	b.click("dialog button", "Save")
	b.until(`!document.querySelector('dialog')`)
	if got := stored(); got != `{"digest":"never","recall":true,"keep_cap_tokens":9000,"keep_user_cap_tokens":0,"min_fold_tokens":50,"anchor_slack_turns":3,"trigger_cap_tokens":30000}` {
		t.Errorf("stored are %s", got)
	}
}
