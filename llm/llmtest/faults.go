package llmtest

import "strings"

// Hang reads the request and never answers. It ends when the client goes away.
func Hang() Behaviour { return Behaviour{(*exchange).hang} }

// HangMidway sends the headers and half of an answer with this text, and then
// nothing.
func HangMidway(text string) Behaviour {
	return Behaviour{func(x *exchange) {
		if x.sendHalf(text) {
			x.hang()
		}
	}}
}

// PauseMidway sends an answer but for its last piece, and that when gate is closed.
func PauseMidway(gate <-chan struct{}, text string) Behaviour {
	return Behaviour{func(x *exchange) {
		events := textReply(split(text, 12)...).events(x.req.Model)
		last := len(events) - 4 // of the pieces: the finish reason, the usage and the end follow
		x.start("text/event-stream")
		if x.send(events[:last]) {
			After(gate, Behaviour{func(x *exchange) { x.send(events[last:]) }}).serve(x)
		}
	}}
}

// HangAtEnd sends the whole answer, and never closes the body. A stream gets
// its finish reason and no "[DONE]".
func HangAtEnd(text string) Behaviour {
	return Behaviour{func(x *exchange) {
		r := textReply(split(text, 12)...)
		if !x.req.Stream {
			x.start("application/json")
			x.write(r.whole(x.req.Model))
			x.hang()
			return
		}
		x.start("text/event-stream")
		events := r.events(x.req.Model)
		x.send(events[:len(events)-1])
		x.hang()
	}}
}

// CutConnection reads the request and breaks the connection.
func CutConnection() Behaviour { return Behaviour{(*exchange).cut} }

// CutMidway sends the headers and half of an answer with this text, and then
// breaks the connection.
func CutMidway(text string) Behaviour {
	return Behaviour{func(x *exchange) {
		x.sendHalf(text)
		x.cut()
	}}
}

// NoChoices answers with a completion that has no choices.
func NoChoices() Behaviour {
	return whole(`{"id":"chatcmpl-fake","object":"chat.completion","model":"fake","choices":[]}`)
}

// InvalidJSON answers with JSON that ends within a string.
func InvalidJSON() Behaviour {
	return whole(`{"id":"chatcmpl-fake","choices":[{"index":0,"message":{"role":"assistant","content":"brok`)
}

// whole answers with a body, which a stream has in one event.
func whole(body string) Behaviour {
	return Behaviour{func(x *exchange) {
		x.start(x.contentType())
		if !x.req.Stream {
			x.write(body)
			return
		}
		x.write("data: " + body + "\n\ndata: [DONE]\n\n")
	}}
}

// WrongContentType answers 200 with a web page, as a captive portal does.
func WrongContentType() Behaviour {
	return Raw(200, "text/html; charset=utf-8", "<!doctype html><title>Welcome</title><p>Please log in.")
}

// Endless sends text for as long as the client reads.
func Endless() Behaviour {
	return Behaviour{func(x *exchange) {
		x.start(x.contentType())
		piece := Text(8 << 10)
		if !x.req.Stream {
			for ok := x.write(`{"choices":[{"index":0,"message":{"role":"assistant","content":"`); ok; {
				ok = x.write(piece)
			}
			return
		}
		event := textReply(piece).events(x.req.Model)[1]
		for x.write(event) {
		}
	}}
}

// EndlessSilence streams empty comments for as long as the client reads.
// Servers send such comments to keep a connection open. A client that asked for
// no stream gets spaces, which may stand before JSON.
func EndlessSilence() Behaviour {
	return Behaviour{func(x *exchange) {
		x.start(x.contentType())
		piece := strings.Repeat(" ", 8<<10)
		if x.req.Stream {
			piece = ": " + piece + "\n\n"
		}
		for x.write(piece) {
		}
	}}
}

func (x *exchange) contentType() string {
	if x.req.Stream {
		return "text/event-stream"
	}
	return "application/json"
}

// sendHalf sends the headers and the first half of an answer: of a stream all
// pieces of the text's first half, in at least one event. False means that
// nobody reads it.
func (x *exchange) sendHalf(text string) bool {
	half := []rune(text)[:len([]rune(text))/2]
	r := textReply(split(string(half), 12)...)
	x.start(x.contentType())
	if !x.req.Stream {
		whole := r.whole(x.req.Model)
		return x.write(whole[:len(whole)/2])
	}
	events := r.events(x.req.Model)
	return x.send(events[:len(events)-3])
}
