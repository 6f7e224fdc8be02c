//go:build linux || darwin

package local

// below is those of the living processes whose line of parents leads to root.
func below(root int, parents map[int]int, living []int) []int {
	var out []int
	for _, pid := range living {
		// The depth bounds the walk: parents read one after the other may form a ring when ids are used again.
		for at, depth := parents[pid], 0; at > 0 && depth < len(parents); at, depth = parents[at], depth+1 {
			if at == root {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}
