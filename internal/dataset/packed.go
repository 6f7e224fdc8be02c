package dataset

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
)

// A packed file may hold far more than it shows. Text packs at ten to one, dull text at a hundred to one; beyond this it is made to
// exhaust its reader.
const bombRatio = 400

// bombBytes is how much text hurts nobody, however it is packed; tests set it lower.
var bombBytes int64 = 1 << 30

// unpacked is the text of a file, unpacked where it is gzip (RFC 1952), with how many bytes of the file were read.
type unpacked struct {
	file   *bufio.Reader
	text   io.Reader
	packed bool
	raw    *counted
	given  int64
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

const gzipMagic = "\x1f\x8b"

func newUnpacked(src io.Reader) (*unpacked, error) {
	u := &unpacked{raw: &counted{r: src}}
	u.file = bufio.NewReaderSize(u.raw, 256<<10)
	u.text = u.file
	if head, _ := u.file.Peek(len(gzipMagic)); string(head) == gzipMagic {
		reader, err := gzip.NewReader(u.file)
		if err != nil {
			return nil, &RecordError{Code: "gzip_damaged", Line: 1, Why: "the file begins as gzip and is none: " + err.Error()}
		}
		u.text, u.packed = reader, true
	}
	return u, nil
}

func (u *unpacked) Read(b []byte) (int, error) {
	n, err := u.text.Read(b)
	u.given += int64(n)
	switch {
	case !u.packed:
	case u.given > bombBytes && u.given > bombRatio*u.raw.n:
		return 0, &RecordError{Code: "gzip_bomb", Line: 1, Byte: u.raw.n, Why: fmt.Sprintf("%d bytes of the file have become %d: it is made to exhaust its reader", u.raw.n, u.given)}
	case err != nil && err != io.EOF:
		return n, &RecordError{Code: "gzip_damaged", Line: 1, Byte: u.raw.n, Why: fmt.Sprintf("the packed file breaks off or is damaged after %d bytes: %v", u.raw.n, err)}
	}
	return n, err
}

// beginning reads the first bytes of a file's text.
func beginning(file *os.File, data []byte) (n int, packed bool, err error) {
	u, err := newUnpacked(file)
	if err != nil {
		return 0, true, err
	}
	n, err = io.ReadFull(u, data)
	return n, u.packed, err
}
