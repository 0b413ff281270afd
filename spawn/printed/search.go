package printed

import "bytes"

// Word is what the words of an error mean.
type Word int

const (
	// Denied are the words of EACCES and EPERM.
	Denied Word = iota + 1
	// ReadOnly are those of EROFS.
	ReadOnly
	// Unreachable are those of ENETUNREACH.
	Unreachable
	// Missing are words of git about a repository that it may not enter.
	Missing
	// Unset are words about a variable that is not set.
	Unset
	// Exhausted are those of EAGAIN about a process or a thread.
	Exhausted
)

// words are what C libraries and languages print for these errors, without the
// letter that some of them write in upper case. Node's other codes come with
// the words.
var words = []struct {
	text string
	word Word
}{
	{"ermission denied", Denied},
	{"peration not permitted", Denied},
	{"ead-only file system", ReadOnly},
	{"etwork is unreachable", Unreachable},
	{"ENETUNREACH", Unreachable},
	{"does not exist", Missing},
	{"does not appear to be a git", Missing},
	{"nvironment variable", Unset},
	{" is not set", Unset},
	{"must be set", Unset},
	{"esource temporarily unavailable", Exhausted}, // also of other calls
	{"Cannot fork", Exhausted},                     // dash
	{"start new thread", Exhausted},                // Python
	{"create new OS thread", Exhausted},            // Go
	{"create native thread", Exhausted},            // Java
}

const (
	// shortest is the length of the shortest of words.
	shortest = 11
	// slots is the size of the table of pairs. It fits into the fastest cache.
	slots = 1 << 12
)

func slot(a, b byte) int { return (int(a)<<5 ^ int(b)) & (slots - 1) }

// skips says for each pair of bytes how far a search may advance if it sees the
// pair at the end of a window of the shortest length (Wu and Manber 1994). Most
// pairs are in none of the words.
var skips = func() (table [slots]uint8) {
	for i := range table {
		table[i] = shortest - 1
	}
	for _, w := range words {
		for i := 1; i < shortest; i++ {
			at := slot(w.text[i-1], w.text[i])
			table[at] = min(table[at], uint8(shortest-1-i))
		}
	}
	return table
}()

// search finds the first of the words: its place and its length. It looks at
// about one byte in eight, once.
func search(data []byte) (at, length int, found Word) {
	for end := shortest - 1; end < len(data); {
		skip := int(skips[slot(data[end-1], data[end])])
		if skip > 0 {
			end += skip
			continue
		}
		start := end - shortest + 1
		for _, w := range words {
			if data[start] == w.text[0] && bytes.HasPrefix(data[start:], []byte(w.text)) {
				return start, len(w.text), w.word
			}
		}
		end++
	}
	return 0, 0, 0
}
