package dataset

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// hashOf hashes a value the same in every process: by folded 128-bit products, as wyhash does
// (https://github.com/wangyi-fudan/wyhash), which takes a third of the time of maphash where values are short. Somebody who
// wants to can write values that it confuses, and then counts fewer different ones in a file of his own; tables over it are
// steered by spread, which he can't know, so that he can't make them slow.
func hashOf(b []byte) uint64 {
	var x, y uint64
	h, n := uint64(hashA), len(b)
	switch {
	case n > 16:
		for rest := b; len(rest) > 16; rest = rest[16:] {
			h = folded(binary.LittleEndian.Uint64(rest)^hashB, binary.LittleEndian.Uint64(rest[8:])^h)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
	case n > 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	default:
		x = word(b)
	}
	return folded(folded(x^hashB, y^h)^hashC, uint64(n)^hashB)
}

// Odd numbers without a pattern: the first binary digits behind the point of the roots of 2, 3 and 5.
const (
	hashA = 0x6a09e667f3bcc909
	hashB = 0xbb67ae8584caa73b
	hashC = 0x3c6ef372fe94f82b
)

func folded(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return high ^ low
}

// spread is an odd number of this process. The high bits of a hash times spread are its place in a table (Dietzfelbinger et al.
// 1997).
var spread = maphash.Bytes(maphash.MakeSeed(), nil) | 1
