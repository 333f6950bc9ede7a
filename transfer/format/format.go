// Package format is what a format of package transfer is, and what formats are
// made of: the outline by which a file is recognized, the input that they read,
// lenient readers of JSON, turns that become messages, notes, and ids. Each
// format is a package below it. What a format gives is a [Conversation] as the
// file has it, which package mend makes sound.
package format

// A Format reads one kind of file.
type Format interface {
	// Name is what options and reports call the format.
	Name() string

	// Marks are paths that files of this format have, as an Outline names them.
	// Other formats may have them too: by these the nearest format is found for a
	// file of none.
	Marks() []string

	// Recognizes tells from the outline of a file's start whether the file is of
	// this format.
	Recognizes(s Outline) bool

	// Parse reads the whole file and emits each conversation as soon as it is
	// read, in the order of the file. It never panics, whatever it reads. What it
	// repairs or leaves out within a conversation stands in that conversation's
	// Notes; a note on the file as a whole, or on a conversation that is not
	// emitted, goes to the methods LeftOut, Repaired and Reject. An error of emit is returned as it is. Any other
	// error says where in the file it arose; what was emitted before it is kept.
	Parse(in *Input, emit func(Conversation) error) error
}
