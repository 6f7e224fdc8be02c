package dataset

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The short way agrees with the long one to the last bit, and takes everything that it is meant for.
func TestShortNumbersAgreeWithLongOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	alphabet, taken := []byte("0123456789012345678901234567890123456789..--+e/:x \x00\xb9"), 0
	for range 1_000_000 {
		b := make([]byte, random.IntN(11), 11+random.IntN(9))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		rest := b[len(b):cap(b)]
		for i := range rest { // what stands behind must not matter
			rest[i] = alphabet[random.IntN(len(alphabet))]
		}
		short, integer, ok := parseShort(b)
		long, longInteger, longOK := parseLong(b)
		if ok && (!longOK || math.Float64bits(short) != math.Float64bits(long) || integer != longInteger) {
			t.Fatalf("%q is %v %t, want %v %t %t", b, short, integer, long, longInteger, longOK)
		}
		if !ok && longOK && len(b) <= 8 && b[0] != '+' && !containsExponent(b) {
			t.Fatalf("%q is left to the long way", b)
		}
		if ok {
			taken++
		}
	}
	if taken < 100_000 {
		t.Errorf("only %d were numbers", taken)
	}
}

func containsExponent(b []byte) bool {
	for _, c := range b {
		if c == 'e' {
			return true
		}
	}
	return false
}

func TestShortNumbers(t *testing.T) {
	for in, want := range map[string]float64{"0": 0, "-0": math.Copysign(0, -1), "7.": 7, ".5": 0.5, "-.25": -0.25, "99999999": 99999999, "-99999999": -99999999,
		"1.234567": 1.234567, "-1.234567": -1.234567, "0.000001": 0.000001, "350.12": 350.12} {
		if got, _, ok := parseShort([]byte(in)); !ok || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is read as %v, %t", in, got, ok)
		}
	}
	for _, in := range []string{"", "-", ".", "-.", "--1", "1-", "1..2", "1.2.3", "+1", "1e5", "123456789", "1 ", "/", ":", "1,5"} {
		if got, _, ok := parseShort([]byte(in)); ok {
			t.Errorf("%q is read as %v", in, got)
		}
	}
}
