package commandline

// Nearest is the command whose name a mistyped word is closest to; "" if none is
// close.
func (p Program) Nearest(word string) string {
	nearest, least := "", (len(word)+2)/3
	for _, command := range p.Commands {
		if d := distance(word, command.Name); d <= least && (nearest == "" || d < least) {
			nearest, least = command.Name, d
		}
	}
	return nearest
}

// distance is how many characters must be added, removed or replaced, or swapped
// with the next one, to make one word of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
