// Package format defines what a format of package transfer is, and has the parts
// that formats are made of: the sample of a file by which its format is found, the
// input that a format reads, lenient readers of JSON, turns that become messages,
// notes, and ids. Each format is a package below it. A format gives a
// [Conversation] as the file has it, and package normalize makes that sound.
package format

// A Format reads one kind of file.
type Format interface {
	// Name is what options and reports call the format.
	Name() string

	// Parse reads the whole file and emits each conversation as soon as it is
	// read, in the order of the file. It never panics on any input. A
	// conversation's Notes name what was repaired or left out within it. A note
	// on the file as a whole, or on a conversation that is not emitted, goes to
	// the methods LeftOut, Repaired and Reject. A role is one that the file gives: the
	// format of a file is the one whose Parse finds most messages with a role and a
	// text in a sample of it. Parse returns an error of emit
	// unchanged. Any other error says where in the file it arose; what was
	// emitted before it is kept.
	Parse(in *Input, emit func(Conversation) error) error
}
