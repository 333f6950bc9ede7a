// Package format defines what a format of package transfer is, and has the parts
// that formats are made of: the outline by which a file is recognized, the input
// that a format reads, lenient readers of JSON, turns that become messages,
// notes, and ids. Each format is a package below it. A format gives a
// [Conversation] as the file has it, and package normalize makes that sound.
package format

// A Format reads one kind of file.
type Format interface {
	// Name is what options and reports call the format.
	Name() string

	// Marks are paths that files of this format have, as an Outline names them.
	// Other formats may have them too. They serve to name the nearest format
	// where no format recognizes a file.
	Marks() []string

	// Recognizes reports from the outline of a file's start whether the file has
	// this format.
	Recognizes(s Outline) bool

	// Parse reads the whole file and emits each conversation as soon as it is
	// read, in the order of the file. It never panics on any input. A
	// conversation's Notes name what was repaired or left out within it. A note
	// on the file as a whole, or on a conversation that is not emitted, goes to
	// the methods LeftOut, Repaired and Reject. Parse returns an error of emit
	// unchanged. Any other error says where in the file it arose; what was
	// emitted before it is kept.
	Parse(in *Input, emit func(Conversation) error) error
}
