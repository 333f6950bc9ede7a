package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// eachElement reads a JSON array and hands over its elements one by one, with
// the place where each stands. A file that is no array is taken as elements
// one after the other: mostly that is one object. Only one element is in
// memory at a time.
//
// A syntax error ends the reading, since nothing tells where the next element
// begins; the error says where it is.
func eachElement(r io.Reader, each func(place string, raw json.RawMessage) error) error {
	in := bufio.NewReader(r)
	first, err := firstByte(in)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(in)
	if first == '[' {
		if _, err := dec.Token(); err != nil {
			return err
		}
	}
	return elements(dec, first == '[', each)
}

// eachElementIn does the same for the array that is the member name of the
// file's one object, and hands every other member to other. Where the member
// is no array, it goes to other too.
func eachElementIn(r io.Reader, name string, each func(place string, raw json.RawMessage) error, other func(name string, raw json.RawMessage)) error {
	in := bufio.NewReader(r)
	dec := json.NewDecoder(in)
	if t, err := dec.Token(); err != nil {
		return broken(dec, "the file", err)
	} else if t != json.Delim('{') {
		return fmt.Errorf("the file is no object with a member %s", name)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return broken(dec, "the file", err)
		}
		if key == name {
			open, err := dec.Token()
			if err != nil {
				return broken(dec, name, err)
			}
			if open != json.Delim('[') {
				return fmt.Errorf("%s is no array", name)
			}
			if err := elements(dec, true, each); err != nil {
				return err
			}
			continue
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return broken(dec, fmt.Sprint(key), err)
		}
		other(fmt.Sprint(key), raw)
	}
	if _, err := dec.Token(); err != nil { // }
		return broken(dec, "the file", err)
	}
	return nil
}

// elements decodes the elements of an array that has been opened, up to and
// with its end, or of the rest of the file.
func elements(dec *json.Decoder, array bool, each func(place string, raw json.RawMessage) error) error {
	for i := 1; ; i++ {
		place := fmt.Sprintf("element %d", i)
		if array && !dec.More() {
			if _, err := dec.Token(); err != nil {
				return broken(dec, place, err)
			}
			return nil
		}
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if !array && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(dec, place, err)
		}
		if err := each(place, raw); err != nil {
			return err
		}
	}
}

// broken says where in the file a syntax error is.
func broken(dec *json.Decoder, place string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s, near byte %d: %w", place, dec.InputOffset(), err)
}

// firstByte gives the first byte that is not white space, without taking it.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(b)) {
			return b, in.UnreadByte()
		}
	}
}

// eachLine hands over the lines of a JSONL file that are not blank, each with
// its place. A line may have any length.
func eachLine(r io.Reader, each func(place string, line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if err := each(fmt.Sprintf("line %d", n), trimmed); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}
