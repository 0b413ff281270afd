package darwin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// learnTimeout bounds the search for what a compiler does not take: some twenty
// tries, each far below a second. Sessions wait for it.
const learnTimeout = time.Minute

// compiler knows what the compiler of this macOS takes. It finds out once, or
// reads what another sidecar has found on the same build of macOS. Its fields
// are set before the first use and not changed after it.
type compiler struct {
	// file keeps what was found; empty keeps nothing.
	file string
	// system returns the version of macOS, 0 if it is not known, and its build.
	system func() (version int, build string)
	try    tryProfile
	log    *slog.Logger

	mu      sync.Mutex    // guards found, not the search
	found   chan struct{} // closed once finding is set; nil before the first use
	finding Finding
}

// find returns what is known. Callers at the same time wait for one search, each
// until its context ends.
func (c *compiler) find(ctx context.Context) Finding {
	c.mu.Lock()
	if c.found == nil {
		c.found = make(chan struct{})
		searching, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
		go func() {
			defer cancel()
			defer close(c.found)
			c.finding = c.search(searching)
		}()
	}
	found := c.found
	c.mu.Unlock()
	select {
	case <-found:
		return c.finding
	case <-ctx.Done():
		return untried(specimen(), 0, ctx.Err())
	}
}

// search reads the finding, or makes it and says once what was found.
func (c *compiler) search(ctx context.Context) Finding {
	p := specimen()
	version, build := c.system()
	note := known{Build: build, Profile: fingerprintOf(p)}
	if finding, ok := note.read(c.file); ok {
		return finding.judged(p, version)
	}
	finding := learn(ctx, p, version, c.try)
	switch {
	case finding.Untried != "":
		c.log.Warn("the sandbox's profile could not be tried", "error", finding.Untried)
		return finding
	case finding.Refusal != "":
		c.log.Error("macOS does not take the sandbox's profile: no sandboxed session starts", "error", finding.Refusal)
	case len(finding.Faults) > 0:
		c.log.Warn("macOS does not take a part of the sandbox's profile: sessions do without it",
			"left_out", finding.Faults)
	}
	if !finding.lasts() {
		return finding
	}
	note.Finding = finding
	if err := note.write(c.file); err != nil {
		c.log.Debug("what macOS takes of the profile is not kept", "error", err)
	}
	return finding
}

// known is what the file has.
type known struct {
	// Build is the build of macOS.
	Build string `json:"build"`
	// Profile is the fingerprint of the profile that was tried.
	Profile string  `json:"profile"`
	Finding Finding `json:"finding"`
}

// maxKnown bounds the file.
const maxKnown = 1 << 20

// read returns what the file says of the same build and the same profile.
func (k known) read(file string) (Finding, bool) {
	if file == "" || k.Build == "" {
		return Finding{}, false
	}
	data, err := fsguard.ReadPlain(file, maxKnown)
	if err != nil {
		return Finding{}, false
	}
	var kept known
	if json.Unmarshal(data, &kept) != nil || kept.Build != k.Build || kept.Profile != k.Profile ||
		!kept.Finding.lasts() {
		return Finding{}, false
	}
	return kept.Finding, true
}

// lasts reports whether a finding holds for later sidecars, too. What a busy
// machine may have caused does not, and what refuses sessions is tried again. Nor
// does one without the rule against typing: that a try has shown typing denied, a
// file cannot say.
func (f Finding) lasts() bool {
	return f.Refusal == "" && f.Dialect.Typing != TypingUntried && !slices.Contains(f.Dialect.Lines, typingForm()) &&
		!slices.ContainsFunc(f.Faults, func(fault Fault) bool { return fault.hung })
}

// typingForm is the form of the rule against typing.
func typingForm() string {
	rule, _ := parseRule("(deny file-ioctl " + typingFilter + ")")
	return rule.form()
}

func (k known) write(file string) error {
	if file == "" || k.Build == "" {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return fsguard.ReplaceSoon(file, data, 0o600)
}

// fingerprintOf tells profiles apart.
func fingerprintOf(p Profile) string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:])
}
