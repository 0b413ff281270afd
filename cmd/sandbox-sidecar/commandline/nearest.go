package commandline

// Nearest is the command whose name a mistyped word is closest to; "" if none is
// close.
func (p Program) Nearest(word string) string {
	var names []string
	for _, command := range p.Commands {
		names = append(names, command.Name)
	}
	return nearest(word, names)
}

// NearestFlag is the flag whose name a mistyped word is closest to; "" if none is
// close.
func (c Command) NearestFlag(word string) string {
	var names []string
	for _, o := range c.options() {
		names = append(names, o.name)
	}
	return nearest(word, names)
}

// NearestWord is the word that the command takes to which a mistyped one is closest;
// "" if none is close.
func (c Command) NearestWord(word string) string { return nearest(word, c.Words) }

func nearest(word string, names []string) string {
	found, least := "", (len(word)+2)/3
	for _, name := range names {
		if d := distance(word, name); d <= least && (found == "" || d < least) {
			found, least = name, d
		}
	}
	return found
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
