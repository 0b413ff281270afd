package recording

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// step is a command with what it printed.
type step struct {
	command string
	output  []string
	took    time.Duration
}

// The picture: a terminal of 80 columns.
const (
	columns                = 80
	charWidth, lineHeight  = 8.43, 20.0 // pixels, of a monospaced font of 14 pixels
	left, top              = 16.0, 44.0
	keyTime                = 45 * time.Millisecond  // between two keys
	mostShown              = 500 * time.Millisecond // of a command's time
	pauseBefore, pauseOver = 600 * time.Millisecond, 1200 * time.Millisecond
)

const style = `
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; fill: #d4d4d4 }
.p { fill: #6a9955 } .c { fill: #ffffff } .n { fill: #9cdcfe }
.c tspan, .a { fill-opacity: 0; animation: show 1ms forwards }
@keyframes show { to { fill-opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .c tspan, .a { animation: none; fill-opacity: 1 } }
`

const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">
<style>%s</style>
<rect width="100%%" height="100%%" rx="8" fill="#1e1e1e"/>
<circle cx="18" cy="16" r="5" fill="#ff5f56"/>
<circle cx="36" cy="16" r="5" fill="#ffbd2e"/>
<circle cx="54" cy="16" r="5" fill="#27c93f"/>
%s</svg>
`

// svg draws the steps. What is typed appears key by key, and what was printed
// after the time that the command took, which is cut if it was long.
func svg(steps []step) string {
	var b strings.Builder
	at, y := pauseBefore, top
	for _, s := range steps {
		fmt.Fprintf(&b, `<text class="p a" x="%g" y="%g" style="%s">$ </text>`+"\n", left, y, delay(at-pauseBefore/2))
		fmt.Fprintf(&b, `<text class="c" x="%g" y="%g">`, left+2*charWidth, y)
		for _, key := range s.command {
			fmt.Fprintf(&b, `<tspan style="%s">%s</tspan>`, delay(at), html.EscapeString(string(key)))
			at += keyTime
		}
		b.WriteString("</text>\n")
		y += lineHeight
		at += min(s.took, mostShown) + pauseBefore/2
		for _, line := range s.output {
			class := "a"
			if strings.HasPrefix(line, "sandbox-sidecar:") || strings.HasPrefix(line, "  ") {
				class = "a n"
			}
			fmt.Fprintf(&b, `<text class="%s" x="%g" y="%g" style="%s">%s</text>`+"\n", class, left, y, delay(at),
				html.EscapeString(line))
			y += lineHeight
		}
		at += pauseOver
	}
	width, height := 2*left+columns*charWidth, y
	return fmt.Sprintf(frame, width, height, label(steps), style, &b)
}

func delay(at time.Duration) string { return fmt.Sprintf("animation-delay:%.2fs", at.Seconds()) }

// label is what a screen reader says instead.
func label(steps []step) string {
	var commands []string
	for _, s := range steps {
		commands = append(commands, s.command)
	}
	return html.EscapeString("A recording of a terminal: " + strings.Join(commands, "; "))
}

// widest is the width of the widest line in characters.
func widest(steps []step) int {
	most := 0
	for _, s := range steps {
		most = max(most, 2+utf8.RuneCountInString(s.command))
		for _, line := range s.output {
			most = max(most, utf8.RuneCountInString(line))
		}
	}
	return most
}
