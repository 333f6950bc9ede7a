package transfer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

func claudeChat(id, more string) string {
	return fmt.Sprintf(`{"uuid":"%[1]s","name":"Chat %[1]s"%s,"chat_messages":[{"uuid":"m","sender":"human","text":"hi"}]}`, id, more)
}

// A conversation of unsound JSON stays out by its name; those behind it come in.
func TestImportSkipsUnsoundConversations(t *testing.T) {
	t.Parallel()
	deep := `,"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for name, test := range map[string]struct{ unsound, note string }{
		"a raw control character": {claudeChat("b", ",\"x\":\"a\x01]}\\\"\""), `left out conversation (Chat b) element 2: it is no sound JSON: invalid character '\x01' in string literal, at its byte 35`},
		"too deep nesting":        {claudeChat("b", deep), `left out conversation (Chat b) element 2: it is no sound JSON: invalid character '[' exceeded max depth, at its byte 10032`},
		"no name":                 {`{"a":"` + "\n" + `"}`, `left out conversation () element 2: it is no sound JSON: invalid character '\n' in string literal, at its byte 7`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for layout, in := range map[string]string{
				"array":  "[" + claudeChat("a", "") + "," + test.unsound + "," + claudeChat("c", "") + "]",
				"stream": claudeChat("a", "") + test.unsound + claudeChat("c", ""),
				"object": `{"conversations":[` + claudeChat("a", "") + " ,\n" + test.unsound + "\n,\n" + claudeChat("c", "") + `],"users":[]}`,
			} {
				var b formattest.Bundles
				report, err := transfer.Import(t.Context(), &b, strings.NewReader(in), transfer.Options{})
				check.That(t, err == nil && len(b) == 2 && b[1].Conversation.Title == "Chat c",
					"%s: %d conversations, %v", layout, len(b), err)
				formattest.Same(t, layout, formattest.Notes(report), test.note)
			}
		})
	}
}

// A cut off file has its own code, and a detail that says where.
func TestImportOfCutOffFilesSaysSo(t *testing.T) {
	t.Parallel()
	whole := "[" + claudeChat("a", "") + "," + claudeChat("b", "") + "]"
	packed, small := gzipped(t, strings.Repeat(" ", 1<<20)+whole), gzipped(t, whole)
	damaged := []byte(small)
	damaged[12] ^= 0xFF
	for name, in := range map[string]string{
		"gzip, before anything is unpacked": small[:12], "gzip, in the first text": small[:len(small)/2], "gzip, before its checksum": small[:len(small)-8], "damaged gzip": string(damaged), "wrong checksum": small[:len(small)-8] + "12345678",
		"plain": whole[:len(whole)-20], "gzip": packed[:len(packed)-30], "gzip's head": packed[:5], "zip": "PK\x03\x04" + "x", "utf-16": utf16(t, whole)[:200],
	} {
		_, err := transfer.Import(t.Context(), nil, strings.NewReader(in), transfer.Options{DryRun: true})
		if why := fault.Of(err); why.Code != transfer.CodeFile || !strings.Contains(why.Detail, "cut off") && !strings.Contains(why.Detail, "can't be unpacked") && name != "zip" {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("the disk is gone")
	_, err := transfer.Import(t.Context(), nil, io.MultiReader(strings.NewReader(whole[:50]), failing{broken}), transfer.Options{DryRun: true})
	check.That(t, errors.Is(err, broken), "a reader that fails: %v", err)
	_, err = transfer.Import(t.Context(), formattest.StoreFunc(func(context.Context, []tree.Bundle) error { return io.ErrUnexpectedEOF }), strings.NewReader(whole), transfer.Options{})
	check.That(t, fault.Of(err).Code == "" && errors.Is(err, io.ErrUnexpectedEOF),
		"a database that breaks: %v", err)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	check.Must(io.WriteString(w, text))(t)
	check.NoError(t, w.Close())
	return b.String()
}

func encoded(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	return check.Must(e.NewEncoder().String(text))(t)
}

func utf16(t *testing.T, text string) string {
	return encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), text)
}

// Files are recognized however long their first members are, however their text
// is written and packed, and in whatever object the conversations stand.
func TestImportRecognizes(t *testing.T) {
	t.Parallel()
	chat := claudeChat("a", `,"p":"é😀"`)
	code := `{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hi"}}` + "\n"
	for name, test := range map[string]struct{ in, format string }{
		"a title of a megabyte":          {`[{"title":"` + strings.Repeat("x", 1<<20) + `","mapping":{"n":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}}]`, "chatgpt"},
		"utf-16 without":                 {utf16(t, chat), "claude"},
		"utf-16 the other way, no mark":  {encoded(t, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), chat), "claude"},
		"utf-32 the other way, no mark":  {encoded(t, utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), chat), "claude"},
		"gzip of utf-16":                 {gzipped(t, "\xff\xfe"+utf16(t, chat)), "claude"},
		"an object of conversations":     {`{"users":[{"uuid":"u"}],"conversations":[` + chat + `]}`, "claude"},
		"an object of ChatGPT's":         {`{"conversations":[{"title":"T","mapping":{"n":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}}]}`, "chatgpt"},
		"Claude Code without sessionId":  {code, "claude-code"},
		"Codex, and not messages":        {`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}` + "\n" + `{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}`, "codex"},
		"messages":                       {`{"role":"user","content":"hi"}` + "\n" + `{"role":"assistant","content":"ho"}`, "messages"},
		"messages in an object of their": {`{"id":"x","messages":[{"role":"user","content":"hi"}]}`, "messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b formattest.Bundles
			report, err := transfer.Import(t.Context(), &b, strings.NewReader(test.in), transfer.Options{})
			check.That(t, err == nil && report.Format == test.format && report.Messages >= 1,
				"%q with %d messages, %v", report.Format, report.Messages, err)
			check.That(t, !strings.Contains(name, "utf") || strings.Contains(string(b[0].Nodes[0].Body), "hi"),
				"body %s", b[0].Nodes[0].Body)
		})
	}
}

// Conversations of several programs are each read as their program's. One of none is named.
func TestImportMixed(t *testing.T) {
	t.Parallel()
	in := `[{"id":"g","title":"ChatGPT","mapping":{"n":{"message":{"author":{"role":"user"},"content":{"parts":["hello"]}}}}},
		{"id":"d","title":"DeepSeek","mapping":{"1":{"message":{"fragments":[{"type":"REQUEST","content":"hi"}]}}}},` + claudeChat("c", "") + `,{"title":"None","mapping":{"n":{}}}]`
	var b formattest.Bundles
	report, err := transfer.Import(t.Context(), &b, strings.NewReader(in), transfer.Options{})
	check.That(t, err == nil && len(b) == 3 && report.Format == "chatgpt",
		"%d conversations of %s, %v", len(b), report.Format, err)
	if notes := formattest.Notes(report); !strings.Contains(notes, "element 2: no conversation of chatgpt, and read as one of deepseek") || !strings.Contains(notes, "left out conversation (None)") {
		t.Error(notes)
	}
}

// An unsound element at the front doesn't hide the format of those behind it.
func TestImportRecognizesBehindUnsoundElements(t *testing.T) {
	t.Parallel()
	chat := claudeChat("a", "")
	tree := `{"message_tree_id":"t","prompt":{"message_id":"p","role":"prompter","text":"hi"}}`
	for name, test := range map[string]struct{ in, format string }{
		"a word of no JSON":        {`[{"uuid":None},` + chat + `]`, "claude"},
		"a raw control character":  {"[{\"x\":\"\x01\"}," + chat + `]`, "claude"},
		"too deep nesting":         {`[{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `},` + chat + `]`, "claude"},
		"in an object":             {`{"conversations":[{"uuid":None},` + chat + `]}`, "claude"},
		"lines, the first no JSON": {"a log line\n" + tree + "\n", "oasst"},
		"a line of messages":       {`{"role":"user","content":"hi"}` + "\n" + `{"role":"assis` + "\n" + `{"role":"assistant","content":"ho"}` + "\n", "messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := transfer.Import(t.Context(), nil, strings.NewReader(test.in), transfer.Options{DryRun: true})
			if err != nil || report.Format != test.format || report.Conversations != 1 || len(report.Notes) == 0 {
				t.Errorf("%q with %d conversations, %v, %s", report.Format, report.Conversations, err, formattest.Notes(report))
			}
		})
	}
}

// What no format finds a message in is an error that says what is there, which formats
// came near, and which there are.
func TestImportOfNoMessage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":1}`:        "which is an object with a. The formats are chatgpt, claude, ",
		`[]`:             "an empty list. The formats",
		`[1]`:            "a list that doesn't begin with an object",
		`[{"a":1},{"b":`: "a list of objects with a, and is cut off at its end",
		`[{"mapping":{"a":{"message":null,"parent":null}}}]`:               "Near came chatgpt, which finds 1 node and no message (none has a role and says something)",
		`{"history":[{"messages":5}]}`:                                     "an object with history",
		`{"uuid":"p","name":"Garden","created_at":"2025-01-01","docs":[]}`: "an object with uuid, name, created_at, docs",
		`{"messages":[{"role":"user"}]}`:                                   "messages, which finds 1 node and no message",
	} {
		report, err := transfer.Import(t.Context(), nil, strings.NewReader(in), transfer.Options{DryRun: true})
		if err == nil || fault.Of(err).Code != transfer.CodeFormat || !strings.Contains(err.Error(), want) || report.Conversations > 0 {
			t.Errorf("%s: %v", in, err)
		}
	}
	const chat = `[{"uuid":"a","name":"A","chat_messages":[{"uuid":"m","sender":"human","text":""}]}]`
	report, err := transfer.Import(t.Context(), nil, strings.NewReader(chat), transfer.Options{DryRun: true, Format: "claude"})
	if err == nil || fault.Of(err).Code != transfer.CodeFormat || !strings.Contains(err.Error(), "none of its 1 node is a message") || report.LeftOut != 1 {
		t.Errorf("a format by its name: %v, %+v", err, report)
	}
}

// Arrays one behind the other are read, and what else stands there is named.
func TestImportReadsOnBehindAnArray(t *testing.T) {
	t.Parallel()
	one := `[{"uuid":"a","name":"A","chat_messages":[{"uuid":"1","sender":"human","text":"One."}]}]`
	two := `[{"uuid":"b","name":"B","chat_messages":[{"uuid":"2","sender":"human","text":"Two."}]}]`
	for _, test := range []struct {
		in   string
		want int
		note bool
	}{{one, 1, false}, {one + two, 2, false}, {one + "\n" + two + "\n", 2, false}, {one + ` {"a":1}`, 1, true}, {one + " junk", 1, true}} {
		report, err := transfer.Import(t.Context(), nil, strings.NewReader(test.in), transfer.Options{DryRun: true})
		noted := slices.ContainsFunc(report.Notes, func(n format.Note) bool { return n.Detail == "what stands behind the end of the array" })
		check.That(t, err == nil && report.Conversations == test.want && noted == test.note,
			"%s: %d conversations, %v, %v", test.in, report.Conversations, report.Notes, err)
	}
}
