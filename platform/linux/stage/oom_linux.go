package stage

import (
	"os"
	"strconv"
	"strings"
)

const (
	oomScoreFile = "/proc/self/oom_score_adj"
	// oomPreference is more than half of what a process gets for all memory of
	// the machine, and what desktops give to programs is less.
	oomPreference = 500
	maxOOMScore   = 1000
)

// preferForOOM lets the kernel end the session's processes before the editor's
// if no memory is left (oom_score_adj, proc(5)). Landlock keeps them from
// changing that. If it is not possible, the session does without.
func preferForOOM() {
	text, err := os.ReadFile(oomScoreFile)
	if err != nil {
		return
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	file, err := os.OpenFile(oomScoreFile, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteString(strconv.Itoa(min(score+oomPreference, maxOOMScore)))
}
