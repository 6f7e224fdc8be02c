package dataset

import (
	"math/bits"
	"strconv"
	"testing"
)

// The hash is the same on every machine and in every process: estimates of distinct values rest on it.
func TestHashIsFixed(t *testing.T) {
	for text, want := range map[string]uint64{"": 0x4cf24c5f750e3f81, "1": 0xacf88e4919832281, "1.5": 0xe5cb27f197399f20,
		"Neumayer": 0xce8b6ddcdb77ab87, "2013-08-22": 0xa00778d589de4889, "wind from the north, strong": 0xc064f85201d721b} {
		if got := hashOf([]byte(text)); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}

// Neither the bytes behind a value nor the room there is change its hash.
func TestHashIsOfTheValueOnly(t *testing.T) {
	behind := []byte("12345678901234567890123456789")
	for n := range len(behind) - 9 {
		tight := append(make([]byte, 0, n), behind[:n]...)
		if hashOf(behind[:n]) != hashOf(tight[:n:n]) || hashOf(tight) == hashOf(behind[:n+1]) {
			t.Errorf("%d bytes", n)
		}
	}
}

// Values that look alike are told apart, and every bit of their hashes is set in half of them.
func TestHashSpreads(t *testing.T) {
	seen, set := map[uint64]bool{}, [64]int{}
	n := 0
	add := func(text string) {
		hash := hashOf([]byte(text))
		if n++; seen[hash] {
			t.Fatalf("%q has the hash of another", text)
		}
		seen[hash] = true
		for ; hash != 0; hash &= hash - 1 {
			set[bits.TrailingZeros64(hash)]++
		}
	}
	for i := range 100_000 {
		s := strconv.Itoa(i)
		add(s)
		add("x" + s + ".25")
		add("0.00000000" + s)
		add("a name longer than sixteen bytes " + s)
		add(s + " in front of more than sixteen bytes")
	}
	for bit, count := range set {
		if 100*count < 49*n || 100*count > 51*n {
			t.Errorf("bit %d is set in %d of %d", bit, count, n)
		}
	}
}
