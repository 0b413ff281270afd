package darwin

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Denial is a denial that the kernel has logged.
type Denial struct {
	// Tag is the message that the session's profile attaches to its denials;
	// see Plan.Tag.
	Tag string
	// Process is the process's own name for itself, and PID its process id.
	Process string
	PID     int
	// Operation is Seatbelt's name of the operation. Target is what it was
	// about: a path, the name of a service, an address.
	Operation, Target string
	// Count is how often it happened, if the kernel has combined equal denials.
	Count int
}

// denialMessage is "Sandbox: NAME(PID) deny(N) OPERATION TARGET". The kernel
// combines repetitions into "N duplicate reports for …".
// It is compiled when it is needed: every stage starts with this package, too.
var denialMessage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^(?:([0-9]+) duplicate reports? for )?` +
		`Sandbox: (.{1,64}?)\(([0-9]+)\) deny\([0-9]+\) ([a-z*-]+)(?: (.*))?$`)
})

// ParseDenial parses one line of "log stream --style ndjson". It returns false
// if the line is anything else. The tag is the message's last line, which the
// kernel writes, so a name with a line break cannot forge another session's
// tag.
func ParseDenial(line []byte) (Denial, bool) {
	var event struct {
		Message string `json:"eventMessage"`
		Process *int   `json:"processID"`
		Sender  string `json:"senderImagePath"`
	}
	if json.Unmarshal(line, &event) != nil || event.Process == nil || *event.Process != 0 ||
		!strings.Contains(event.Sender, "/Sandbox.kext/") {
		return Denial{}, false
	}
	tag := strings.LastIndexByte(event.Message, '\n')
	if tag < 0 {
		return Denial{}, false // another program's, or one without the profile's tag
	}
	parts := denialMessage().FindStringSubmatch(event.Message[:tag])
	if parts == nil {
		return Denial{}, false
	}
	d := Denial{Tag: event.Message[tag+1:], Process: parts[2], Operation: parts[4], Target: parts[5], Count: 1}
	var err error
	if d.PID, err = strconv.Atoi(parts[3]); err != nil {
		return Denial{}, false
	}
	if parts[1] != "" {
		if d.Count, err = strconv.Atoi(parts[1]); err != nil {
			return Denial{}, false
		}
	}
	return d, true
}

// accesses maps prefixes of Seatbelt's operations to kinds of access; the
// longest match counts. The other operations are tried silently by many
// programs (services, preferences, metadata), and no setting allows them.
var accesses = map[string]platform.Refused{
	"file-read-data": platform.RefusedRead, "file-write-data": platform.RefusedWrite,
	"file-write-create": platform.RefusedCreate,
	"file-write-unlink": platform.RefusedRemove, "process-exec": platform.RefusedExecute,
	"network-outbound": platform.RefusedConnect,
	"network-bind":     platform.RefusedBind, "signal": platform.RefusedSignal,
}

// Report returns the denial as platform.Denial. It returns false for an
// operation that is not reported.
func (d Denial) Report() (platform.Denial, bool) {
	longest := ""
	for name := range accesses {
		if strings.HasPrefix(d.Operation, name) && len(name) > len(longest) {
			longest = name
		}
	}
	if longest == "" || d.Target == "" {
		return platform.Denial{}, false
	}
	reported := platform.Denial{
		Access: accesses[longest], Target: d.Target, PID: d.PID, Process: d.Process, Count: d.Count,
	}
	if reported.Access == platform.RefusedConnect && strings.HasPrefix(d.Target, "/") {
		reported.Access = platform.RefusedConnectUnix
	}
	return reported, true
}
