//go:build unix

package lifecycle

import (
	"slices"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// kindFingerprint is the kind of fingerprints in a journal. The key is the id
// of one. A part is the unique id of a process of that session, whose
// descendants are to be killed too.
const kindFingerprint = "fingerprint"

// fingerprintData is what a journal says of a fingerprint or of one process.
type fingerprintData struct {
	// Dir is the directory of the fingerprint.
	Dir string `json:"dir,omitempty"`
	// Boot is the start of the machine since which a process's id counts.
	Boot string `json:"boot,omitempty"`
}

// marked is what a journal says of one fingerprint.
type marked struct {
	fingerprint SessionFingerprint
	relatives   []uint64
	boot        string
}

// gatherMarked gathers records by the fingerprints that they are about, and
// counts those that make no sense.
func gatherMarked(records []journal.Record) (found []marked, senseless int) {
	for _, r := range records {
		var data fingerprintData
		if r.Decode(&data) != nil {
			senseless++
			continue
		}
		at := slices.IndexFunc(found, func(m marked) bool { return m.fingerprint.ID == r.Key })
		if at < 0 {
			at = len(found)
			found = append(found, marked{fingerprint: SessionFingerprint{ID: r.Key}})
		}
		m := &found[at]
		if data.Dir != "" {
			m.fingerprint.Dir = data.Dir
		}
		if r.Part == "" {
			continue
		}
		id, err := strconv.ParseUint(r.Part, 10, 64)
		if err != nil {
			senseless++
			continue
		}
		m.relatives, m.boot = append(m.relatives, id), data.Boot
	}
	return found, senseless
}
