//go:build unix

package lifecycle

import (
	"slices"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// kindFingerprint is the kind of fingerprints in a journal. The key is the
// fingerprint's id. A part is the unique id of a process of that session, whose
// descendants are to be killed too.
const kindFingerprint = "fingerprint"

// fingerprintData is the data of a fingerprint, or of one process.
type fingerprintData struct {
	// Dir is the directory of the fingerprint.
	Dir string `json:"dir,omitempty"`
	// Boot is the start of the machine to which a process's unique id belongs.
	Boot string `json:"boot,omitempty"`
}

// marked describes one fingerprint from a journal.
type marked struct {
	fingerprint SessionFingerprint
	relatives   []uint64
	boot        string
}

// gatherMarked groups records by their fingerprints, and counts those without a
// meaning.
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
