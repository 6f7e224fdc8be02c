package dataset

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseNumber reads a decimal number: sign, digits, fraction, exponent, and nothing else (no hexadecimal, underscores or
// words, which strconv would take). Up to 15 digits without an exponent, mantissa and power of ten are exact and one
// division rounds correctly (Clinger 1990); the rest goes to strconv. A number too large is an infinity.
func parseNumber(b []byte) (value float64, integer, ok bool) {
	if value, integer, ok = parseShort(b); ok {
		return value, integer, true
	}
	return parseLong(b)
}

var signs = [2]float64{1, -1}

// parseShort reads a number without exponent whose digits and point are at most eight, as most in tables are, without a loop:
// the lengths of numbers are hard to foresee for the processor, and each one that it gets wrong costs it more than all eight
// digits do. It says no to whatever parseLong has to look at.
func parseShort(b []byte) (value float64, integer, ok bool) {
	minus := 0
	if len(b) > 0 && b[0] == '-' {
		minus = 1
	}
	b = b[minus:]
	n := len(b)
	if n == 0 || n > 8 {
		return 0, false, false
	}
	const zeros, points, ones, tops = 0x3030303030303030, 0x2e2e2e2e2e2e2e2e, 0x0101010101010101, 0x8080808080808080
	w := word(b)<<(64-8*n) | zeros>>(8*n) // "1.5" becomes "000001.5"; the first character is the lowest byte
	fraction, integer := 0, true
	if x := w ^ points; (x-ones)&^x&tops != 0 {
		at := bits.TrailingZeros64((x-ones)&^x&tops) &^ 7
		fraction, integer = 7-at>>3, false
		before := uint64(1)<<at - 1
		w = w&^(before<<8|0xff) | w&before<<8 | '0' // "0000015"
	}
	d := w ^ zeros
	if (d+0x7676767676767676|d)&tops != 0 || n == 1 && !integer {
		return 0, false, false
	}
	d = d*10 + d>>8 // pairs, then fours, then all eight (Lemire)
	d = (d&0x000000ff000000ff*(100+1000000<<32) + d>>16&0x000000ff000000ff*(1+10000<<32)) >> 32
	return float64(d) / powersOfTen[fraction] * signs[minus], integer, true
}

// word is up to eight bytes as a little-endian number. What stands behind them is loaded as well where there is room, which is
// always so but at the end of a buffer, and cut off.
func word(b []byte) uint64 {
	n := len(b)
	if cap(b) >= 8 {
		return binary.LittleEndian.Uint64(b[:8]) & (1<<(8*n) - 1)
	}
	var w uint64
	for i := range n {
		w |= uint64(b[i]) << (8 * i)
	}
	return w
}

func parseLong(b []byte) (value float64, integer, ok bool) {
	i, negative := 0, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	var mantissa uint64
	digits, fraction := 0, 0
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		digits++
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		integer = false
		for i++; i < len(b) && b[i]-'0' < 10; i++ {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			fraction++
		}
	}
	if digits+fraction == 0 {
		return 0, false, false
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		integer = false
		i++
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		first := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		if i == first || i < len(b) {
			return 0, false, false
		}
	} else if i == len(b) && digits+fraction <= 15 {
		value = float64(mantissa) / powersOfTen[fraction]
		if negative {
			value = -value
		}
		return value, integer, true
	}
	if i < len(b) {
		return 0, false, false
	}
	value, _ = strconv.ParseFloat(string(b), 64) // the syntax is checked; out of range yields ±Inf
	return value, integer, true
}
