package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/internal/check"
)

// treePicture is a PNG with something to see on it.
func treePicture(t testing.TB) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 320, 200))
	for y := range 200 {
		for x := range 320 {
			m.Set(x, y, color.RGBA{uint8(40 + x/4), uint8(90 + y/2), 60, 255})
		}
	}
	var b bytes.Buffer
	check.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// give hands a file to the page as a paste or a drop does, whose last step a
// script can make.
const give = `{
	const bytes = Uint8Array.from(atob($1), c => c.charCodeAt(0))
	const data = new DataTransfer()
	data.items.add(new File([bytes], $2, { type: $3 }))
	const field = document.querySelector('.composer textarea')
	field.dispatchEvent($4 === 'paste'
		? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
		: new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
}`

// TestAttach pastes a picture, drops a text and picks another, leaves one out, and
// sends the rest. The transcript shows them, also after a reload. What the server
// refuses isn't attached, and the page says why.
func TestAttach(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	b := newTab(t, s, "/", alsoDark)
	b.shows("A conversation is a tree.")
	picture := base64.StdEncoding.EncodeToString(treePicture(t))
	eval[any](b, give, picture, "old tree.png", "image/png", "paste")
	b.until(`document.querySelector('.tray li:not(.coming) img')`)
	eval[any](b, give, base64.StdEncoding.EncodeToString([]byte{0, 255, 0, 254}), "tree.bin", "application/octet-stream", "drop")
	b.shows("“tree.bin” was not attached: ")
	eval[any](b, give, base64.StdEncoding.EncodeToString([]byte("# Hazel\n\nCut it low.")), "notes.md", "text/markdown", "drop")
	file := filepath.Join(t.TempDir(), "left out.txt")
	eval[any](b, dropped, base64.StdEncoding.EncodeToString([]byte("Beside the field.")), "beside.txt")
	b.until(`document.querySelectorAll('.tray li:not(.coming)').length === 3`)
	b.click(`.tray [aria-label="Leave out beside.txt"]`, "")
	// A long text that is pasted becomes a file, unless it is wanted in the message.
	eval[any](b, `{
		const data = new DataTransfer()
		data.setData('text/plain', 'Hazel '.repeat(5000))
		document.querySelector('.composer textarea').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
	}`)
	b.until(`document.querySelector('.tray li:last-child')?.innerText.includes('pasted.txt')`)
	b.click(".notice button", "Put it into the message")
	b.until(`document.querySelectorAll('.tray li').length === 2 && document.querySelector('.composer textarea').textLength === 30_000`)
	eval[any](b, `document.querySelector('.composer textarea').select()`) // to be written over
	check.NoError(t, os.WriteFile(file, []byte("Nobody reads this."), 0o600))
	b.do(chromedp.SetUploadFiles(".attach-input", []string{file}))
	b.until(`document.querySelectorAll('.tray li:not(.coming)').length === 3`)
	b.view("composer")
	b.click(`.tray [aria-label="Leave out left out.txt"]`, "")
	b.until(`document.querySelectorAll('.tray li').length === 2`)
	b.send("Which tree is it?")
	model.say("Hazel.", end)
	shown := `document.querySelector('.message.user .thumbnail img')?.naturalWidth === 320 && document.querySelector('.message.user .file')?.innerText.includes('notes.md 20 B')`
	b.until(shown + ` && !document.querySelector('.tray') && !document.querySelector('.live')`)
	conversation, head := b.ids()
	b.do(chromedp.Reload())
	b.until(shown)
	b.view("transcript")

	var told struct {
		Data []struct{ Content json.RawMessage }
	}
	s.call("GET", "/v1/conversations/"+conversation.String()+"/branches/"+head.String()+"/transcript", "", &told)
	first := string(told.Data[0].Content)
	check.Has(t, "stored", first, "/old%20tree.png", `"filename":"notes.md"`)
	check.Lacks(t, "stored", first, "left out", "base64")
}

// snapshot leaves a picture of the page where COPPICE_SNAPSHOTS names a folder.
func (b *tab) snapshot(name string) {
	folder := os.Getenv("COPPICE_SNAPSHOTS")
	if folder == "" {
		return
	}
	b.picture(filepath.Join(folder, strings.ReplaceAll(b.t.Name(), "/", "_")+"-"+name+".png"))
}

func (b *tab) picture(file string) {
	b.t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, run(b, chromedp.CaptureScreenshot()), 0o644)
	}
	check.NoError(b.t, err)
}
