package dataset

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// A packed file may hold far more than it shows. Text packs at ten to one, dull text at a hundred to one; from here on it is made
// to exhaust its reader.
const bombRatio = 400

// bombBytes is how much text hurts nobody, however it is packed.
const bombBytes = 128 << 20

// errPastBound ends the text where no record can begin before the bound that was asked for.
var errPastBound = errors.New("the bound of what is read is passed")

// unpacked is the text of a file, unpacked where it is gzip (RFC 1952), with how many bytes of the file were read. It ends with
// its context, and, where it is bounded, a longest record behind the bound: blank lines end no record and would be read for ever.
type unpacked struct {
	ctx    context.Context
	end    int64 // of what may be read, 0 for all
	file   *bufio.Reader
	text   io.Reader
	packed bool
	raw    *counted
	given  int64
	ended  bool // the text was unpacked to its end
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

func newUnpacked(ctx context.Context, src io.Reader, maxBytes int64) (*unpacked, error) {
	u := &unpacked{ctx: ctx, raw: &counted{r: src}}
	if maxBytes > 0 && maxBytes < math.MaxInt64-2*MaxRecord {
		u.end = maxBytes + 2*MaxRecord
	}
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
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	if u.end > 0 && u.given >= u.end {
		return 0, errPastBound
	}
	n, err := u.text.Read(b)
	u.given += int64(n)
	u.ended = u.ended || err == io.EOF
	switch {
	case !u.packed:
	case u.given >= bombBytes && float64(u.given) >= bombRatio*u.used():
		return 0, &RecordError{Code: "gzip_bomb", Line: 1, Byte: u.raw.n, Why: fmt.Sprintf("%d bytes of the file have become %d: it is made to exhaust its reader", u.raw.n, u.given)}
	case err != nil && err != io.EOF:
		return n, &RecordError{Code: "gzip_damaged", Line: 1, Byte: u.raw.n, Why: fmt.Sprintf("the packed file breaks off or is damaged after %d bytes: %v", u.raw.n, err)}
	}
	return n, err
}

// knowingPacked is how many packed bytes must have been unpacked before they tell how the others are packed: at its beginning a packer
// has nothing to refer to, and writes more for a row than later.
const knowingPacked = 32 << 10

// share is how much of the file stands before an offset of its text, as the bytes that were unpacked so far tell; known is false where
// these are too few.
func (u *unpacked) share(offset, size int64) (share float64, known bool) {
	taken := u.used()
	if u.ended {
		taken = float64(size)
	}
	if u.given == 0 || taken < float64(min(knowingPacked, size)) {
		return 0, false
	}
	return float64(offset) / float64(u.given) * taken / float64(max(size, 1)), true
}

// used is how many bytes of the file the text so far was made of: what was read, less what was read ahead.
func (u *unpacked) used() float64 { return float64(u.raw.n - int64(u.file.Buffered())) }

// beginning reads the first bytes of a file's text.
func beginning(ctx context.Context, file *os.File, data []byte) (n int, packed bool, err error) {
	u, err := newUnpacked(ctx, file, 0)
	if err != nil {
		return 0, true, err
	}
	n, err = io.ReadFull(u, data)
	return n, u.packed, err
}
