package darwin

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Denial is something that the kernel has refused a session.
type Denial struct {
	// Tag is the message that the session's profile puts to its refusals; see
	// Plan.Tag.
	Tag string
	// Process is the name of the process as it calls itself, and PID its
	// number.
	Process string
	PID     int
	// Operation is Seatbelt's name of what was refused, Target what it was
	// about: a path, a name of a service, an address.
	Operation, Target string
	// Count is how often, where the kernel has gathered refusals that were
	// alike.
	Count int
}

// denialMessage is "Sandbox: NAME(PID) deny(N) OPERATION TARGET", of which the
// kernel counts repetitions in "N duplicate reports for …".
var denialMessage = regexp.MustCompile(
	`(?s)^(?:([0-9]+) duplicate reports? for )?Sandbox: (.{1,64}?)\(([0-9]+)\) deny\([0-9]+\) ([a-z*-]+)(?: (.*))?$`)

// ParseDenial reads one line of "log stream --style ndjson"; false where it is
// anything else. The tag is the message's last line, which the kernel writes: a
// name with a line break in it cannot stand for another session's.
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
		return Denial{}, false // another program's, or one that the kernel refuses whatever the profile says
	}
	parts := denialMessage.FindStringSubmatch(event.Message[:tag])
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

// accesses are what Seatbelt's names mean to users, by their beginnings; the
// longest that fits counts. What is missing is looked up by many programs
// without anybody's notice (services, preferences, metadata), and no setting is
// about it.
var accesses = map[string]platform.Refused{
	"file-read-data": platform.RefusedRead, "file-write-data": platform.RefusedWrite,
	"file-write-create": platform.RefusedCreate,
	"file-write-unlink": platform.RefusedRemove, "process-exec": platform.RefusedExecute,
	"network-outbound": platform.RefusedConnect,
	"network-bind":     platform.RefusedBind, "signal": platform.RefusedSignal,
}

// Told is the denial in the words of all systems; false where it is none that
// anybody is told of.
func (d Denial) Told() (platform.Denial, bool) {
	longest := ""
	for name := range accesses {
		if strings.HasPrefix(d.Operation, name) && len(name) > len(longest) {
			longest = name
		}
	}
	if longest == "" || d.Target == "" {
		return platform.Denial{}, false
	}
	told := platform.Denial{Access: accesses[longest], Target: d.Target, PID: d.PID, Process: d.Process, Count: d.Count}
	if told.Access == platform.RefusedConnect && strings.HasPrefix(d.Target, "/") {
		told.Access = platform.RefusedConnectUnix
	}
	return told, true
}
