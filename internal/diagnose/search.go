package diagnose

// automaton finds many literals in one pass (Aho and Corasick, 1975). Its table has one row of 64 entries for each state:
// bytes that no literal has share one column. Bytes that are the same in most logs stay in the first rows, so that the part of
// the table that is used fits the first cache.
type automaton struct {
	column [256]uint16
	// next holds the first entry of the following state's row. An array of the full range of uint16 needs no bounds checks.
	next *[1 << 16]uint16
	// accepting is the first entry of the first state that ends a literal; all states behind it end one too.
	accepting uint16
	// ends lists the literals that end in each accepting state, by its number.
	ends [][]uint16
	// lengths are those of the literals, longest the largest of them, in bytes.
	lengths []int
	longest int
}

const (
	columnBits = 6
	columns    = 1 << columnBits
	// lanes is how many parts of a block are searched side by side: the next state depends on the one before it, and a
	// processor that waits for one lane works on the others.
	lanes = 4
)

// node is a state while the automaton is built.
type node struct {
	next   map[byte]int
	fail   int
	ends   []uint16
	number uint16
}

// newAutomaton builds the automaton of literals. It panics where they have more than 63 different bytes or 1024 states: they
// are constants of this package.
func newAutomaton(literals []string) *automaton {
	nodes := trie(literals)
	a := &automaton{next: new([1 << 16]uint16)}
	used := uint16(0)
	for _, literal := range literals {
		a.lengths = append(a.lengths, len(literal))
		a.longest = max(a.longest, len(literal))
		for i := range len(literal) {
			if b := literal[i]; a.column[b] == 0 {
				used++
				a.column[b] = used
			}
		}
	}
	if used >= columns || len(nodes) > 1<<(16-columnBits) {
		panic("diagnose: the literals do not fit the automaton's table")
	}
	a.number(nodes)
	for i := range nodes {
		row := nodes[i].number << columnBits
		for b := range 256 {
			a.next[row+a.column[b]] = nodes[follow(nodes, i, byte(b))].number << columnBits
		}
	}
	return a
}

// number gives accepting states the last numbers.
func (a *automaton) number(nodes []node) {
	var number uint16
	for _, accepts := range []bool{false, true} {
		if accepts {
			a.accepting = number << columnBits
		}
		for i := range nodes {
			if len(nodes[i].ends) > 0 == accepts {
				nodes[i].number = number
				number++
				if accepts {
					a.ends = append(a.ends, nodes[i].ends)
				}
			}
		}
	}
}

// trie is the literals' prefixes with their failure links, breadth first.
func trie(literals []string) []node {
	nodes := []node{{next: map[byte]int{}}}
	for id, literal := range literals {
		at := 0
		for i := range len(literal) {
			child, ok := nodes[at].next[literal[i]]
			if !ok {
				child = len(nodes)
				nodes = append(nodes, node{next: map[byte]int{}})
				nodes[at].next[literal[i]] = child
			}
			at = child
		}
		nodes[at].ends = append(nodes[at].ends, uint16(id))
	}
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for b, child := range nodes[at].next {
			if at != 0 {
				nodes[child].fail = follow(nodes, nodes[at].fail, b)
			}
			nodes[child].ends = append(nodes[child].ends, nodes[nodes[child].fail].ends...)
			queue = append(queue, child)
		}
	}
	return nodes
}

func follow(nodes []node, at int, b byte) int {
	for {
		if child, ok := nodes[at].next[b]; ok {
			return child
		}
		if at == 0 {
			return 0
		}
		at = nodes[at].fail
	}
}

// search calls found once for each literal in block, with the offset behind it. The order is that of the text only within
// a quarter of the block.
func (a *automaton) search(block []byte, found func(literal, end int)) {
	part := len(block) / lanes
	if part < a.longest {
		a.searchOne(block, 0, 0, len(block), found)
		return
	}
	next, column, accepting := a.next, &a.column, a.accepting
	l0, l1, l2, l3 := block[:part], block[part:2*part], block[2*part:3*part], block[3*part:4*part]
	l1, l2, l3 = l1[:len(l0)], l2[:len(l0)], l3[:len(l0)]
	var s0, s1, s2, s3 uint16
	for i := range l0 {
		s0 = next[s0+column[l0[i]]]
		s1 = next[s1+column[l1[i]]]
		s2 = next[s2+column[l2[i]]]
		s3 = next[s3+column[l3[i]]]
		if max(s0, s1, s2, s3) >= accepting {
			a.report(s0, i+1, found)
			a.report(s1, part+i+1, found)
			a.report(s2, 2*part+i+1, found)
			a.report(s3, 3*part+i+1, found)
		}
	}
	for border := part; border < lanes*part; border += part {
		a.searchOne(block[:border+a.longest-1], border-a.longest+1, border, border, found)
	}
	a.searchOne(block, lanes*part-a.longest+1, lanes*part, len(block), found)
}

// searchOne searches text from the given offset on and reports the literals that begin before starts and end behind ends.
func (a *automaton) searchOne(text []byte, from, ends, starts int, found func(literal, end int)) {
	var state uint16
	for i := from; i < len(text); i++ {
		state = a.next[state+a.column[text[i]]]
		if state >= a.accepting && i >= ends {
			a.report(state, i+1, func(literal, end int) {
				if end-a.lengths[literal] < starts {
					found(literal, end)
				}
			})
		}
	}
}

func (a *automaton) report(state uint16, end int, found func(literal, end int)) {
	if state < a.accepting {
		return
	}
	for _, literal := range a.ends[(state-a.accepting)>>columnBits] {
		found(int(literal), end)
	}
}
