package checkpoint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Bounds of reading a pickle: bytes read, values made, and marks open at once.
const (
	maxPickle = 64 << 20
	maxValues = 2_000_000
)

var errPickleTooLarge = errors.New("pickle too large")

// pickleError says what stands at which byte of a pickle instead of an instruction that fits.
type pickleError struct {
	at   int64
	what string
}

func (e *pickleError) Error() string { return fmt.Sprintf("byte %d: %s", e.at, e.what) }

// unpickler follows the instructions of a pickle (CPython, Lib/pickletools.py, protocols 0 to 5) without doing what they
// ask for: no module is imported and nothing is called. What a call would make becomes a value that names the function
// and its arguments; only the few functions by which PyTorch describes a tensor are understood (see reduce).
type unpickler struct {
	source  *bufio.Reader
	at      int64 // of the next byte
	left    int64 // bytes that may still be read
	whole   bool  // left is the pickle's own length, not the bound
	stack   []any
	marks   []int // heights of the stack
	memo    map[int64]any
	made    int
	imports []pyGlobal // in the order of their appearance, each once
	seen    map[pyGlobal]bool
}

// readPickle reads the value that a pickle of at most size bytes describes. It stops at the pickle's end, also where more
// bytes follow. Errors: io.ErrUnexpectedEOF where it ends early, errPickleTooLarge, a *pickleError, or one of the disk.
func readPickle(source io.Reader, size int64) (any, *unpickler, error) {
	u := &unpickler{left: min(size, maxPickle), whole: size <= maxPickle, memo: map[int64]any{}, seen: map[pyGlobal]bool{}}
	u.source = bufio.NewReaderSize(source, 64<<10)
	for {
		start := u.at
		op, err := u.byte()
		if err != nil {
			return nil, u, err
		}
		if op == '.' {
			value, err := u.pop()
			return value, u, u.placed(err, start)
		}
		if err := u.step(op); err != nil {
			return nil, u, u.placed(err, start)
		}
		if len(u.stack) > maxValues || len(u.memo) > maxValues {
			return nil, u, errPickleTooLarge
		}
	}
}

// errNotThere is an instruction that needs more than the stack or the memo holds.
var errNotThere = errors.New("instruction without its operands")

func (u *unpickler) placed(err error, at int64) error {
	if errors.Is(err, errNotThere) {
		return &pickleError{at, err.Error()}
	}
	return err
}

func (u *unpickler) take(n int64) error {
	if n < 0 || n > u.left {
		if u.whole {
			return io.ErrUnexpectedEOF
		}
		return errPickleTooLarge
	}
	u.left -= n
	u.at += n
	return nil
}

func (u *unpickler) byte() (byte, error) {
	if err := u.take(1); err != nil {
		return 0, err
	}
	b, err := u.source.ReadByte()
	return b, early(err)
}

func early(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (u *unpickler) bytes(n int64) ([]byte, error) {
	if err := u.take(n); err != nil {
		return nil, err
	}
	data := make([]byte, n) // at most maxPickle
	_, err := io.ReadFull(u.source, data)
	return data, early(err)
}

func (u *unpickler) skip(n int64) error {
	if err := u.take(n); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, u.source, n)
	return early(err)
}

// line reads the text of a protocol 0 instruction up to its line end.
func (u *unpickler) line() (string, error) {
	var text []byte
	for {
		b, err := u.byte()
		if err != nil || b == '\n' {
			return strings.TrimSuffix(string(text), "\r"), err
		}
		text = append(text, b)
	}
}

// number reads an unsigned little-endian integer of n bytes; one beyond int64 is negative, and refused by take.
func (u *unpickler) number(n int64) (int64, error) {
	data, err := u.bytes(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], data)
	return int64(binary.LittleEndian.Uint64(wide[:])), nil
}

func (u *unpickler) push(v any) error {
	if u.made++; u.made > maxValues {
		return errPickleTooLarge
	}
	u.stack = append(u.stack, v)
	return nil
}

func (u *unpickler) floor() int {
	if len(u.marks) == 0 {
		return 0
	}
	return u.marks[len(u.marks)-1]
}

func (u *unpickler) pop() (any, error) {
	if len(u.stack) <= u.floor() {
		return nil, errNotThere
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

func (u *unpickler) top() (any, error) {
	if len(u.stack) <= u.floor() {
		return nil, errNotThere
	}
	return u.stack[len(u.stack)-1], nil
}

// popMark takes everything above the last mark.
func (u *unpickler) popMark() ([]any, error) {
	if len(u.marks) == 0 {
		return nil, errNotThere
	}
	from := u.floor()
	u.marks = u.marks[:len(u.marks)-1]
	items := append([]any(nil), u.stack[from:]...)
	u.stack = u.stack[:from]
	return items, nil
}

// step follows one instruction. They are told apart by what they do with the stack.
func (u *unpickler) step(op byte) error {
	switch op {
	case '(':
		if len(u.marks) > maxValues {
			return errPickleTooLarge
		}
		u.marks = append(u.marks, len(u.stack))
		return nil
	case 0x80: // PROTO
		return u.skip(1)
	case 0x95: // FRAME
		return u.skip(8)
	case '0': // POP, which takes a mark where there is nothing above it
		if len(u.marks) > 0 && len(u.stack) == u.floor() {
			u.marks = u.marks[:len(u.marks)-1]
			return nil
		}
		_, err := u.pop()
		return err
	case '1': // POP_MARK
		_, err := u.popMark()
		return err
	case '2': // DUP
		v, err := u.top()
		if err != nil {
			return err
		}
		return u.push(v)
	case 'p', 'q', 'r', 0x94, 'g', 'h', 'j':
		return u.remember(op)
	case 'a', 'e', 's', 'u', 0x90, 'b':
		return u.fill(op)
	case 'R', 0x81, 0x92, 'o', 'i', 'Q', 'P', 'c', 0x93, 0x82, 0x83, 0x84:
		return u.call(op)
	case '}', ']', ')', 't', 'l', 'd', 0x85, 0x86, 0x87, 0x8f, 0x91:
		return u.collect(op)
	}
	return u.scalar(op)
}

// remember puts to the memo and gets from it.
func (u *unpickler) remember(op byte) error {
	var index int64
	var err error
	switch op {
	case 'q', 'h':
		index, err = u.number(1)
	case 'r', 'j':
		index, err = u.number(4)
	case 'p', 'g':
		var text string
		if text, err = u.line(); err == nil {
			if index, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = errNotThere
			}
		}
	case 0x94: // MEMOIZE
		index = int64(len(u.memo))
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' || op == 'g' {
		v, ok := u.memo[index]
		if !ok {
			return errNotThere
		}
		return u.push(v)
	}
	v, err := u.top()
	if err == nil {
		u.memo[index] = v
	}
	return err
}

// fill adds to the list, dict, set or object that lies on the stack.
func (u *unpickler) fill(op byte) error {
	var items []any
	var err error
	count := 1
	switch op {
	case 'e', 'u', 0x90:
		items, err = u.popMark()
	default:
		if op == 's' {
			count = 2
		}
		items = make([]any, count)
		for i := count - 1; i >= 0 && err == nil; i-- {
			items[i], err = u.pop()
		}
	}
	if err != nil {
		return err
	}
	holder, err := u.top()
	if err != nil {
		return err
	}
	switch op {
	case 'a', 'e':
		if list, ok := holder.(*pyList); ok {
			list.items = append(list.items, items...)
		}
	case 's', 'u':
		if len(items)%2 != 0 {
			return errNotThere
		}
		if dict := dictOf(holder); dict != nil {
			for i := 0; i < len(items); i += 2 {
				dict.set(items[i], items[i+1])
			}
		}
	case 'b':
		if object, ok := holder.(*pyObject); ok {
			object.state = items[0]
		}
	}
	return nil
}

// collect makes a container.
func (u *unpickler) collect(op byte) error {
	switch op {
	case '}':
		return u.push(&pyDict{})
	case ']':
		return u.push(&pyList{})
	case ')':
		return u.push(pyTuple(nil))
	case 0x8f:
		return u.push(opaque{})
	}
	var items []any
	var err error
	if op >= 0x85 && op <= 0x87 {
		items = make([]any, op-0x84)
		for i := len(items) - 1; i >= 0 && err == nil; i-- {
			items[i], err = u.pop()
		}
	} else {
		items, err = u.popMark()
	}
	if err != nil {
		return err
	}
	switch op {
	case 'l':
		return u.push(&pyList{items: items})
	case 0x91:
		return u.push(opaque{})
	case 'd':
		dict := &pyDict{}
		for i := 0; i+1 < len(items); i += 2 {
			dict.set(items[i], items[i+1])
		}
		return u.push(dict)
	}
	return u.push(pyTuple(items))
}

// scalar reads numbers, texts and bytes. Bytes and numbers that fit no int64 are passed over.
func (u *unpickler) scalar(op byte) error {
	switch op {
	case 'N':
		return u.push(nil)
	case 0x88, 0x89:
		return u.push(op == 0x88)
	case 'K', 'M', 'J':
		n, err := u.number(map[byte]int64{'K': 1, 'M': 2, 'J': 4}[op])
		if op == 'J' {
			n = int64(int32(n))
		}
		return errors.Join(err, u.push(n))
	case 'G':
		data, err := u.bytes(8)
		if err != nil {
			return err
		}
		return u.push(math.Float64frombits(binary.BigEndian.Uint64(data)))
	case 'I', 'L', 'F':
		text, err := u.line()
		if err != nil {
			return err
		}
		return u.push(spelled(op, text))
	case 'S', 'V':
		text, err := u.line()
		return errors.Join(err, u.push(strings.Trim(text, `'"`)))
	case 0x97: // NEXT_BUFFER
		return u.push(opaque{})
	case 0x98: // READONLY_BUFFER
		return nil
	}
	width, known := map[byte]int64{'X': 4, 0x8c: 1, 0x8d: 8, 'T': 4, 'U': 1, 'B': 4, 'C': 1, 0x8e: 8, 0x96: 8, 0x8a: 1, 0x8b: 4}[op]
	if !known {
		return &pickleError{u.at - 1, fmt.Sprintf("0x%02x is no instruction of a pickle", op)}
	}
	n, err := u.number(width)
	if err != nil {
		return err
	}
	switch op {
	case 'X', 0x8c, 0x8d, 'T', 'U':
		data, err := u.bytes(n)
		if err != nil {
			return err
		}
		return u.push(string(data))
	case 0x8a, 0x8b:
		return u.long(n)
	}
	return errors.Join(u.skip(n), u.push(opaque{}))
}

// long reads a two's complement integer of n bytes.
func (u *unpickler) long(n int64) error {
	if n > 8 {
		return errors.Join(u.skip(n), u.push(opaque{}))
	}
	value, err := u.number(n)
	if n > 0 && n < 8 {
		shift := 64 - 8*n
		value = value << shift >> shift
	}
	return errors.Join(err, u.push(value))
}

// spelled reads a number of protocol 0; 00 and 01 are its truth values.
func spelled(op byte, text string) any {
	switch {
	case op == 'F':
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value
		}
	case op == 'I' && (text == "00" || text == "01"):
		return text == "01"
	default:
		if value, err := strconv.ParseInt(strings.TrimSuffix(text, "L"), 10, 64); err == nil {
			return value
		}
	}
	return opaque{}
}
