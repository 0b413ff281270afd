package printed

import (
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

// addressForms are how programs print a host with its port: "1.2.3.4:443",
// "[::1]:443", "host.example:443", "host NAME port N" and "to NAME port N".
var addressForms = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?:host|to) ([A-Za-z0-9._:-]+) port (\d{1,5})\b`),
		regexp.MustCompile(`(?:^|[\s(])\[([0-9A-Fa-f:.]+)\]:(\d{1,5})\b`),
		regexp.MustCompile(`(?:^|[\s(])((?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+):(\d{1,5})\b`),
	}
})

// address is the host and port that a line names; "" if it names none.
func address(text string) string {
	for _, form := range addressForms() {
		m := form.FindStringSubmatch(text)
		if m == nil || !isHost(m[1]) || m[2] == "0" {
			continue
		}
		return net.JoinHostPort(m[1], m[2])
	}
	return ""
}

// isHost reports whether a text is an address or the name of a host.
func isHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	last := text[strings.LastIndexByte(text, '.')+1:]
	return len(text) <= 253 && !strings.Contains(text, ":") && strings.IndexFunc(last, func(r rune) bool {
		return r < '0' || r > '9'
	}) >= 0
}
