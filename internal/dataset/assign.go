package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
)

// row is what a split has to know of a data record.
type row struct {
	rank     [2]uint64 // its place in the shuffled order
	identity uint64    // hash of its values without the id: equal rows stay together
	features uint64    // hash of its features as they are meant, for the leakage check
	when     float64   // seconds or steps of a time split
	class    uint32
	line     uint32 // for messages; stays at the largest number beyond four thousand million
}

// rankOf is a row's place in the shuffled order: the first 16 bytes of sha256("trainwright split 1\n<seed>\n<id>"). A hash
// instead of a generator makes the order the same on every machine and for every version of Go, and a row keeps its
// place when others are added.
func rankOf(seed int64, id string) [2]uint64 {
	buf := append(make([]byte, 0, 64+len(id)), "trainwright split 1\n"...)
	buf = append(strconv.AppendInt(buf, seed, 10), '\n')
	sum := sha256.Sum256(append(buf, id...))
	return [2]uint64{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])}
}

func compareRanks(a, b [2]uint64) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}

// group is a set of equal rows, named by its first.
type group struct {
	first uint32
	size  uint32
}

// groupsOf collects equal rows in shuffled order: leader[i] is the first row equal to row i.
func groupsOf(rows []row) (groups []group, leader []uint32) {
	order := make([]uint32, len(rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(rows[a].identity, rows[b].identity), cmp.Compare(a, b))
	})
	leader = make([]uint32, len(rows))
	for i, at := range order {
		if i > 0 && rows[at].identity == rows[order[i-1]].identity {
			leader[at] = leader[order[i-1]]
			groups[len(groups)-1].size++
			continue
		}
		leader[at] = at
		groups = append(groups, group{first: at, size: 1})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(compareRanks(rows[a.first].rank, rows[b.first].rank), cmp.Compare(a.first, b.first))
	})
	return groups, leader
}

// deal gives each row a part (an index into weights), and counts the rows that differ. Each class is dealt by itself, so a
// random split is one class.
func deal(rows []row, weights []int64, classes int) (part []uint8, different int) {
	groups, leader := groupsOf(rows)
	sizes := make([]int64, classes)
	for _, g := range groups {
		sizes[rows[g.first].class] += int64(g.size)
	}
	room := quotas(sizes, weights)
	part = make([]uint8, len(rows))
	large := largestFirst(groups, slices.Min(shares(int64(len(rows)), weights)))
	for i, g := range groups {
		left := room[rows[g.first].class]
		best := 0
		for p := range left {
			if left[p] >= int64(g.size) && i >= large {
				best = p
				break
			}
			if left[p] > left[best] {
				best = p
			}
		}
		left[best] -= int64(g.size)
		part[g.first] = uint8(best)
	}
	for i := range part {
		part[i] = part[leader[i]]
	}
	return part, len(groups)
}

// largestFirst moves groups of more than half the smallest part to the front, the largest first, and returns how many there are. They go
// where there is most room: met late, one would find no part that takes it, and met early, be a small part by itself.
func largestFirst(groups []group, smallest int64) int {
	large := func(g group) bool { return g.size > 1 && 2*int64(g.size) > smallest }
	slices.SortStableFunc(groups, func(a, b group) int {
		switch {
		case large(a) && large(b):
			return cmp.Compare(b.size, a.size)
		case large(a):
			return -1
		case large(b):
			return 1
		}
		return 0
	})
	n := 0
	for n < len(groups) && large(groups[n]) {
		n++
	}
	return n
}

// shares divides n by weights with the largest remainders rounded up; ties go to the earlier part.
func shares(n int64, weights []int64) []int64 {
	sum := int64(0)
	for _, weight := range weights {
		sum += weight
	}
	out, order, left := make([]int64, len(weights)), make([]int, len(weights)), n
	for i, weight := range weights {
		out[i], order[i] = n*weight/sum, i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n*weights[b]%sum, n*weights[a]%sum) })
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}

// quotas says how many rows of each class go to each part, so that every part has exactly the size that shares gives it for
// all rows together, every class is spread as evenly as whole numbers allow, and a class is in every part where it has
// enough rows. Rows that remain after rounding down go, class by class with the most first, to the parts that lack most:
// the greedy construction of Gale and Ryser, which always comes out even.
func quotas(sizes, weights []int64) [][]int64 {
	total, sum := int64(0), int64(0)
	for _, size := range sizes {
		total += size
	}
	for _, weight := range weights {
		sum += weight
	}
	lacking := shares(total, weights)
	quota, rest, order := make([][]int64, len(sizes)), make([]int64, len(sizes)), make([]int, len(sizes))
	for c, size := range sizes {
		quota[c], rest[c], order[c] = make([]int64, len(weights)), size, c
		for p, weight := range weights {
			quota[c][p] = size * weight / sum
			rest[c] -= quota[c][p]
			lacking[p] -= quota[c][p]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, c := range order {
		parts := make([]int, len(weights))
		for p := range parts {
			parts[p] = p
		}
		slices.SortStableFunc(parts, func(a, b int) int {
			return cmp.Or(cmp.Compare(lacking[b], lacking[a]), cmp.Compare(sizes[c]*weights[b]%sum, sizes[c]*weights[a]%sum))
		})
		for i := range rest[c] {
			p := parts[int(i)%len(parts)]
			quota[c][p]++
			lacking[p]--
		}
	}
	represent(quota, sizes)
	return quota
}

// represent moves single rows so that each class is in every part where it has rows enough, and in the first part (train) in
// any case. Another class makes the opposite move, so the parts keep their sizes; where none can, nothing is moved.
func represent(quota [][]int64, sizes []int64) {
	for c := range quota {
		parts := len(quota[c])
		if sizes[c] < int64(parts) {
			parts = 1
		}
		for p := range parts {
			if quota[c][p] > 0 || sizes[c] == 0 {
				continue
			}
			from := richest(quota[c], p)
			spare := func(other int) bool {
				q := quota[other]
				return other != c && q[p] > 0 && (q[p] > 1 || p > 0 && sizes[other] < int64(len(q)))
			}
			for other := range quota {
				if spare(other) {
					quota[c][p]++
					quota[c][from]--
					quota[other][p]--
					quota[other][from]++
					break
				}
			}
		}
	}
}

func richest(quota []int64, except int) int {
	best := -1
	for p := range quota {
		if p != except && (best < 0 || quota[p] > quota[best]) {
			best = p
		}
	}
	return best
}
