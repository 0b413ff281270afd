package document

import "strings"

// Nearest returns the known word that a misspelt one probably means, or "".
func Nearest(word string, known []string) string {
	// If a third of the letters is wrong, it is another word.
	best, limit := "", max(2, len(word)/3)
	if len(word) > 64 {
		return ""
	}
	lower := strings.ToLower(word)
	for _, candidate := range known {
		d := editDistance(word, candidate)
		if lower != word {
			d = min(d, editDistance(lower, candidate))
		}
		if d <= limit {
			best, limit = candidate, d-1
		}
	}
	return best
}

// editDistance counts the letters to insert, remove, replace or swap with their
// neighbour (optimal string alignment).
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
