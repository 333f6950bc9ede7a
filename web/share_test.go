package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/llm"
)

// TestShareABranch makes a link, opens it as a stranger does, and revokes it.
func TestShareABranch(t *testing.T) {
	t.Parallel()
	s := newSite(t, llm.Offline(time.Millisecond))
	id, messages := s.conversation("Trees", "What is a *coppice*?", "A wood that is **cut**.", "Why?")
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[1]), alsoDark)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.click(".branch-head .menu button", "Conversation")
	b.click("[role=menuitem]", "Share this branch")
	b.click("dialog button", "Make a link")
	b.until(`document.querySelector('.share-link input') && document.querySelector('.share-list li')`)
	b.view("share")
	link := eval[string](b, `document.querySelector('.share-link input').value`)
	if !strings.Contains(link, "/shared/cps_") {
		t.Fatalf("the link is %q", link)
	}
	stranger := newTab(t, s, link[strings.Index(link, "/shared/"):], alsoDark)
	stranger.shows("A wood that is cut.")
	stranger.view("shared")
	stranger.hides("Why?")
	if stranger.sound(); eval[int](stranger, `document.querySelectorAll('.sidebar, .composer, dialog').length`) != 0 {
		t.Error("a stranger sees more than the branch")
	}
	b.click(".share-list button", "revoke")
	b.until(`!document.querySelector('.share-list li')`)
	stranger.do(chromedp.Reload())
	stranger.shows("This link opens nothing")
}
