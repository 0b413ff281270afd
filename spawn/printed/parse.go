package printed

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Said is what a line says about a refusal.
type Said struct {
	Word Word
	// Execute: the line is about running a program. Change: it is about writing.
	Execute, Change bool
	// Paths may be absolute, begin with "~/" or be relative. The first that leads
	// somewhere counts.
	Paths []Path
	// Address is a host and a port if the word is Unreachable; else empty.
	Address string
}

// Path is a path of a line.
type Path struct {
	Name string
	// Sure says where the path begins and ends. Others count only if they exist.
	Sure bool
}

// maxPath is the kernel's own limit (PATH_MAX).
const maxPath = 4096

// Parse takes a line of a Scanner apart. Said.Word is 0 if the line has none of
// the words, or is not text.
func Parse(line []byte) Said {
	text := plain(line)
	at, length, word := search([]byte(text))
	if word == 0 {
		return Said{}
	}
	said := Said{Word: word}
	switch word {
	case Exhausted:
		if !starts().MatchString(text) {
			return Said{}
		}
	case Unreachable:
		said.Address = address(text)
	case Missing:
		for _, q := range quotations(text[:at]) {
			said.Paths = append(said.Paths, Path{Name: q.text})
		}
	case Denied, ReadOnly:
		said.Paths = paths(text, at, at+length)
		said.Execute = word == Denied && executes(text[:at])
		said.Change = word == ReadOnly || changes().MatchString(text)
	}
	return said
}

// executes reports whether the text before the words is about running a program.
func executes(before string) bool {
	for _, sign := range []string{
		"fork/exec ", "exec ", "execve", "execvp", "spawn ", "cannot execute", "cannot run", "failed to execute",
		"Cannot run program",
	} {
		if strings.Contains(before, sign) {
			return true
		}
	}
	return shells().MatchString(before)
}

// starts matches what a program says about starting a process or a thread.
var starts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(v?fork|clone|thread|process|spawn|posix_spawn|pthread_create|subprocess)`)
})

// shells matches a shell that could not run a program: "bash: line 1: /x: P" or
// "sh: 1: /x: P".
var shells = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?(?:\S*/)?(?:ba|da|z|k)?sh: (?:line )?(?:\d+: )?[~./][^:]*: .?$`)
})

// changes matches what programs print if they could not write.
var changes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(creat\w*|writ\w*|mkdir|touch|lock|remov\w*|unlink|rename|rmdir|delet\w*|move|` +
		`output file|append\w*|sav(e|ing)|truncat\w*|symlink|install\w*)\b`)
})

// paths lists what may be the path of a line, the likeliest first. The words are
// text[from:to].
func paths(text string, from, to int) []Path {
	quoted := quotations(text)
	var list []Path
	add := func(name string, sure bool) {
		name = strings.TrimSpace(name)
		if name == "" || name == "." || name == "/" || len(name) > maxPath || strings.ContainsRune(name, '�') {
			return
		}
		list = append(list, Path{Name: name, Sure: sure})
	}
	// A quoted path is nearest to the words: before them, as coreutils and git
	// print it, or after them, as Python and Node do.
	for i := len(quoted) - 1; i >= 0; i-- {
		if q := quoted[i]; q.end <= from {
			add(q.text, q.whole)
			break
		}
	}
	for _, q := range quoted {
		if q.start >= to {
			add(q.text, q.whole)
			break
		}
	}
	if len(list) > 0 {
		return list
	}
	if found := unquoted(text[:from]); len(found) > 0 {
		for _, p := range found {
			add(p.Name, p.Sure)
		}
	} else if name, ok := strings.CutPrefix(text[to:], ": "); ok && rooted(name) {
		add(name, false)
	}
	return list
}

// unquoted lists what may be the path in the text before the words: "cat: /a b:
// P", "open /a b: p", "tar: /a: Cannot open: P".
func unquoted(before string) []Path {
	before, _ = cutLetter(before)
	switch {
	case strings.HasSuffix(before, ": "):
		before = strings.TrimSuffix(before, ": ")
	case strings.HasSuffix(before, " ("):
		before = strings.TrimSuffix(before, " (")
	default:
		return nil
	}
	rest, part, cut := cutLast(before, ": ")
	if node := strings.TrimPrefix(part, "["); strings.HasPrefix(node, "E") && strings.ToUpper(node) == node {
		return nil // "Error: EACCES: permission denied, …"
	}
	var list []Path
	// The path may hold ": " itself, if there is such a file.
	if i := rootedAt(before); i >= 0 && cut && i < len(before)-len(part) {
		list = append(list, Path{Name: before[i:]})
	}
	if i := rootedAt(part); i >= 0 {
		return append(list, Path{Name: part[i:], Sure: i == 0 || !strings.Contains(part[i:], " ")})
	}
	if !cut {
		return list
	}
	if _, earlier, _ := cutLast(rest, ": "); rootedAt(earlier) == 0 {
		return append(list, Path{Name: earlier}) // what failed stands after the path
	}
	return append(list, Path{Name: part}) // a bare name, as in "cat: name: P"
}

// cutLetter removes the first letter of the words, which they do not include.
func cutLetter(before string) (string, bool) {
	if n := len(before); n > 0 && strings.IndexByte("PpOoRrNn", before[n-1]) >= 0 {
		return before[:n-1], true
	}
	return before, false
}

// rooted reports whether a text begins like a path that does not depend on the
// words before it.
func rooted(text string) bool {
	for _, start := range []string{"/", "~/", "./", "../"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// rootedAt is where the first word begins that begins like a path; -1 if none
// does.
func rootedAt(text string) int {
	for i := 0; i < len(text); i++ {
		if (i == 0 || text[i-1] == ' ') && rooted(text[i:]) {
			return i
		}
	}
	return -1
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+len(sep):], true
}

// quotation is a quoted part of a text.
type quotation struct {
	text       string
	start, end int // with the quotes
	// whole: the quotes leave no doubt about what they hold.
	whole bool
}

// marks are opening quotes with what closes them.
var marks = []struct{ open, close string }{
	{"'", "'"}, {`"`, `"`}, {"`", "'"}, {"`", "`"}, {"‘", "’"}, {"“", "”"},
}

// quotations lists what is quoted in a text. A quote opens only at the start of
// a word, so that "can't" opens none, and closes only at the end of one.
func quotations(text string) []quotation {
	var list []quotation
	for i := 0; i < len(text); {
		q, ok := quotationAt(text, i)
		if !ok {
			i++
			continue
		}
		list = append(list, q)
		i = q.end
	}
	return list
}

func quotationAt(text string, at int) (quotation, bool) {
	if at > 0 && strings.IndexByte(" ([{=:,", text[at-1]) < 0 {
		return quotation{}, false
	}
	for _, mark := range marks {
		if !strings.HasPrefix(text[at:], mark.open) {
			continue
		}
		from := at + len(mark.open)
		for end := from; end < len(text); end++ {
			if !strings.HasPrefix(text[end:], mark.close) {
				continue
			}
			after := text[end+len(mark.close):]
			if after != "" && strings.IndexByte(" )]}:,.;", after[0]) < 0 {
				continue
			}
			held := text[from:end]
			// A second quote, or a backslash, may be part of the name or be put
			// there by the program.
			whole := !strings.Contains(held, `\`) && !strings.Contains(held, mark.close) &&
				!strings.Contains(after, mark.close) && filepath.IsAbs(strings.Replace(held, "~/", "/", 1))
			return quotation{text: held, start: at, end: end + len(mark.close), whole: whole}, true
		}
	}
	return quotation{}, false
}
