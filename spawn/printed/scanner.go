package printed

import (
	"bytes"
	"time"
)

const (
	// maxLine bounds the bytes of a line on each side of the words.
	maxLine = 1 << 10
	// burst lines may be found at once, then one each pace: 20 a second.
	burst = 20
	pace  = 50 * time.Millisecond
	// most lines are found in a session.
	most = 10_000
)

// Scanner finds lines that tell of a refusal in a session's output. It keeps at
// most one unfinished line. The zero value is not usable; see NewScanner. Only
// one goroutine may use it.
type Scanner struct {
	found func(line []byte)
	now   func() time.Time

	tail   []byte // of an unfinished line
	cut    bool   // the next byte, or the tail, is not at the start of its line
	tokens int
	filled time.Time
	left   int // lines that may still be found
}

// NewScanner returns a scanner that calls found with each line that has such
// words, without its line end. The line is valid only during the call.
func NewScanner(found func(line []byte)) *Scanner {
	return &Scanner{found: found, now: time.Now, tokens: burst, left: most}
}

// Scan takes the next bytes of the output.
func (s *Scanner) Scan(data []byte) {
	if s.left == 0 || len(data) == 0 {
		return
	}
	s.fill()
	if s.tokens == 0 {
		s.tail, s.cut = s.tail[:0], true // a flood: look again once a token is there
		return
	}
	if len(s.tail) > 0 {
		n := bytes.IndexByte(data[:min(len(data), maxLine)], '\n') + 1
		complete := n > 0
		if !complete {
			n = min(len(data), maxLine)
		}
		s.tail = append(s.tail, data[:n]...)
		data = data[n:]
		if !complete && len(s.tail) < 2*maxLine {
			return
		}
		s.lines(s.tail)
		s.tail, s.cut = s.tail[:0], !complete
	}
	// If no line ends in the last bytes, the last line is long. It is searched,
	// but for its end.
	from := max(0, len(data)-maxLine)
	end := from + bytes.LastIndexByte(data[from:], '\n') + 1
	s.lines(data[:end])
	if end > 0 {
		s.cut = data[end-1] != '\n'
	}
	if rest := data[end:]; len(rest) > 0 {
		s.tail = append(s.tail[:0], rest...)
	}
}

// End takes the end of the output.
func (s *Scanner) End() {
	s.lines(s.tail)
	s.tail = nil
}

// lines searches whole lines. If the first one is cut, its first word is, too,
// and could be the end of a path.
func (s *Scanner) lines(data []byte) {
	cut := s.cut
	for s.tokens > 0 && s.left > 0 {
		at, length, found := search(data)
		if found == 0 {
			return
		}
		start := max(0, at-maxLine)
		if n := bytes.LastIndexByte(data[start:at], '\n'); n >= 0 {
			start += n + 1
		} else if start > 0 || cut {
			word := bytes.IndexByte(data[start:at], ' ')
			if word < 0 {
				word = at - start
			}
			start += word
		}
		end := min(len(data), at+length+maxLine)
		next := end
		if n := bytes.IndexByte(data[at:end], '\n'); n >= 0 {
			end, next = at+n, at+n+1
		}
		s.tokens--
		s.left--
		s.found(data[start:end])
		data, cut = data[next:], data[next-1] != '\n'
	}
}

// fill adds the tokens that are due.
func (s *Scanner) fill() {
	if s.tokens == burst {
		return
	}
	now := s.now()
	if s.filled.IsZero() {
		s.filled = now
	}
	if due := int(now.Sub(s.filled) / pace); due > 0 {
		s.tokens = min(burst, s.tokens+due)
		s.filled = s.filled.Add(time.Duration(due) * pace)
	}
	if s.tokens == burst {
		s.filled = time.Time{}
	}
}
