package printed

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorder is a scanner whose clock stands still, with what it found.
type recorder struct {
	*Scanner
	lines []string
	clock time.Time
}

func newRecorder() *recorder {
	r := &recorder{clock: time.Unix(1, 0)}
	r.Scanner = NewScanner(func(line []byte) { r.lines = append(r.lines, string(line)) })
	r.now = func() time.Time { return r.clock }
	return r
}

const sample = "all is well\r\n\x1b[31mcat: /root/ä: Permission denied\x1b[0m\r\nmore\n\n" +
	"open /x: permission denied\nOSError: [Errno 30] Read-only file system: '/usr/x'\r\nOperation not permitted\n" +
	"connect ENETUNREACH 1.2.3.4:443\nNetwork is unreachable\nTOKEN is not set\nTOKEN must be set\n" +
	"set the environment variable TOKEN\nPermission\ndenied\nthe last: /y: Permission denied"

var sampleFound = []string{
	"\x1b[31mcat: /root/ä: Permission denied\x1b[0m\r", "open /x: permission denied",
	"OSError: [Errno 30] Read-only file system: '/usr/x'\r", "Operation not permitted",
	"connect ENETUNREACH 1.2.3.4:443",
	"Network is unreachable", "TOKEN is not set", "TOKEN must be set", "set the environment variable TOKEN",
	"the last: /y: Permission denied",
}

// Wherever the output is cut into chunks, the same lines are found.
func TestScanner_FindsLinesAcrossChunks(t *testing.T) {
	t.Parallel()
	for size := 1; size <= len(sample); size++ {
		r := newRecorder()
		for chunk := range slices.Chunk([]byte(sample), size) {
			r.Scan(chunk)
		}
		r.End()
		if !slices.Equal(r.lines, sampleFound) {
			t.Fatalf("in chunks of %d: %q", size, r.lines)
		}
	}
	for at := range sample {
		r := newRecorder()
		r.Scan([]byte(sample[:at]))
		r.Scan([]byte(sample[at:]))
		r.End()
		if !slices.Equal(r.lines, sampleFound) {
			t.Fatalf("cut at %d: %q", at, r.lines)
		}
	}
}

// Every word is found at every place, whatever is around it.
func TestSearch_MissesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		w := words[random.IntN(len(words))]
		before, after := noise(random, random.IntN(40)), noise(random, random.IntN(40))
		text := before + w.text + after
		at, length, found := search([]byte(text))
		if found == 0 || at > len(before) || at == len(before) && (length != len(w.text) || found != w.word) {
			t.Fatalf("%q: %d, %d, %d", text, at, length, found)
		}
	}
	for _, w := range words {
		if len(w.text) < shortest {
			t.Errorf("%q is shorter than the window", w.text)
		}
	}
}

func noise(random *rand.Rand, length int) string {
	text := make([]byte, length)
	const letters = "ermison dtpEACDNUR:/'x"
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

func TestScanner_LongLines(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	long := bytes.Repeat([]byte("x y "), 1<<18) // 1 MB without an end
	copy(long[500_000:], "cat: /root/x: Permission denied")
	for chunk := range slices.Chunk(long, 64<<10) {
		r.Scan(chunk)
		if len(r.tail) > 2*maxLine || cap(r.tail) > 8*maxLine {
			t.Fatalf("keeps %d bytes of %d", len(r.tail), cap(r.tail))
		}
	}
	r.Scan([]byte("\ncat: /root/y: Permission denied\n"))
	r.End()
	if len(r.lines) != 2 || !strings.Contains(r.lines[0], "cat: /root/x: Permission denied") ||
		len(r.lines[0]) > 3*maxLine || r.lines[1] != "cat: /root/y: Permission denied" {
		t.Errorf("%q", r.lines)
	}
}

// A flood costs no more than its bounds, and what follows it is found.
func TestScanner_IsBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	flood := bytes.Repeat([]byte("cat: /root/x: Permission denied\n"), 1000)
	for range 10 {
		r.Scan(flood)
	}
	if len(r.lines) != burst {
		t.Errorf("%d lines at once", len(r.lines))
	}
	r.clock = r.clock.Add(time.Second)
	r.Scan(flood)
	r.clock = r.clock.Add(time.Second)
	r.Scan(flood)
	if most := burst + 2*int(time.Second/pace); len(r.lines) < burst+1 || len(r.lines) > most {
		t.Errorf("%d lines after two seconds", len(r.lines))
	}
	for range 2 * most / burst {
		r.clock = r.clock.Add(time.Minute)
		r.Scan(flood)
	}
	if len(r.lines) != most {
		t.Errorf("%d lines in all", len(r.lines))
	}
}

// A line whose start is unknown does not give the end of a path as a path.
func TestScanner_CutLines(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	r.Scan(bytes.Repeat([]byte("Permission denied\n"), burst))
	r.Scan([]byte("cat: /home/u"))
	r.clock = r.clock.Add(time.Minute)
	r.Scan([]byte("/x: Permission denied\ncat: /y: Permission denied\n"))
	got := r.lines[burst:]
	if len(got) != 2 || strings.Contains(got[0], "/x") || got[1] != "cat: /y: Permission denied" {
		t.Errorf("after a flood: %q", got)
	}
	for length := range 4 * maxLine {
		r := newRecorder()
		line := strings.Repeat("a ", length/2) + strings.Repeat("b", length%7) + "/root/dir/file: Permission denied\n"
		for chunk := range slices.Chunk([]byte(line), 700) {
			r.Scan(chunk)
		}
		r.End()
		for _, found := range r.lines {
			if strings.Contains(found, "/") && !strings.Contains(found, "/root/dir/file") {
				t.Fatalf("%d: %q", length, found)
			}
		}
	}
}

// A session's output is encoded for its editor. Looking at it costs less, and
// takes no memory. Looking at each line by an expression would cost a hundred
// times as much.
func TestScanner_CostsLittle(t *testing.T) {
	chunk := bytes.Repeat([]byte("-rw-r--r-- 1 root root  4096 Nov 23 04:14 permission_denial.go\r\n"), 1000)
	encoded := make([]byte, base64.StdEncoding.EncodedLen(len(chunk)))
	r := newRecorder()
	r.Scan(chunk)
	if n := testing.AllocsPerRun(100, func() { r.Scan(chunk) }); n > 0 {
		t.Errorf("%.0f allocations a chunk", n)
	}
	scan, encode := time.Hour, time.Hour
	for range 300 { // the best of each is free of the machine's load
		start := time.Now()
		r.Scan(chunk)
		middle := time.Now()
		base64.StdEncoding.Encode(encoded, chunk)
		scan, encode = min(scan, middle.Sub(start)), min(encode, time.Since(middle))
	}
	t.Logf("64 KiB: scanned in %v, encoded in %v", scan, encode)
	if scan > 3*encode {
		t.Errorf("64 KiB are scanned in %v and encoded in %v", scan, encode)
	}
}

// Lines made of the words, paths and quotes in any order never give a path that
// they do not hold in one piece.
func TestParse_RandomLinesGiveNoOtherPath(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"/root/secret", "/home/u/a b", "/home/u/ä", "~/notes", "/usr/x: y", "/a'b", "../up", "/x/(1)"}
	glue := []string{
		" ", ": ", "'", `"`, " (", ")", "‘", "’", "cat", "open ", "mkdir ", "\x1b[31m", "\x1b[0m", "\r", "\t",
		"[Errno 13] ", ", ", " -> ", "EACCES: ", "http://x/y", "~", "/", ".", "can't", "permission", "line 1: ",
	}
	for range 20_000 {
		var line strings.Builder
		held := map[string]bool{}
		for range 1 + random.IntN(8) {
			switch random.IntN(4) {
			case 0:
				name := names[random.IntN(len(names))]
				held[name] = true
				line.WriteString(name)
			case 1:
				line.WriteString(words[random.IntN(5)].text)
			default:
				line.WriteString(glue[random.IntN(len(glue))])
			}
		}
		for _, path := range Parse([]byte(line.String())).Paths {
			if !path.Sure {
				continue // it counts only if there is such a file
			}
			if !strings.Contains(plain([]byte(line.String())), path.Name) {
				t.Fatalf("%q gives %q, which it does not hold", line.String(), path.Name)
			}
		}
	}
	// As programs print them, around any path: that path or nothing.
	forms := []string{
		"cat: %s: Permission denied", "open %s: permission denied", "[Errno 13] Permission denied: '%s'",
		"ls: cannot open directory '%s': Permission denied", "sh: 1: cannot create %s: Read-only file system",
		"Error: EACCES: permission denied, open '%s'", "x (%s): \x1b[1m'%s'\x1b[m: Operation not permitted",
		"ls: cannot open directory ‘%s’: Permission denied", `Load key "%s": Permission denied`,
		"java: %s (Permission denied)", "bash: line 3: %s: Permission denied",
	}
	const letters = "abc d.e-_'\"`:()[]{}‘’“”ä→*?$#,;=~\\"
	runes := []rune(letters)
	wrong, right := 0, 0
	for range 1000 {
		name := "/" + string(runes[random.IntN(3)])
		for range random.IntN(12) {
			if random.IntN(5) == 0 {
				name += "/"
			}
			name += string(runes[random.IntN(len(runes))])
		}
		name = strings.TrimRight(name, " ")
		form := forms[random.IntN(len(forms))]
		line := strings.ReplaceAll(form, "%s", name)
		for _, path := range Parse([]byte(line)).Paths {
			switch {
			case path.Name == name:
				right++
			case path.Sure:
				wrong++
				t.Errorf("%q gives %q, not %q", line, path.Name, name)
			}
		}
	}
	if right < 500 {
		t.Errorf("only %d of 1000 paths are found", right)
	}
	t.Logf("%d right, %d wrong", right, wrong)
}
