//go:build unix

package lifecycle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// origin says where the process ids in a journal mean something. The zero value
// is an unknown place, and is like no other.
type origin struct {
	// Boot identifies this start of the machine.
	Boot string `json:"boot,omitempty"`
	// PIDNamespace names the process id namespace. The kernel gives the number
	// of one that has ended to the next, so that Init, the start time of the
	// process 1 in it, stands beside it. Both are empty on systems without such
	// namespaces.
	PIDNamespace string `json:"pidNamespace,omitempty"`
	Init         string `json:"init,omitempty"`
}

// is reports whether both are known, and the same.
func (o origin) is(other origin) bool { return o.Boot != "" && o == other }

// entries are what a journal says that still counts. The zero value is empty.
type entries struct {
	// origin is that of the journal's writer; nil where the journal does not
	// say, as those of older versions do not.
	origin *origin
	// disputed is true where a journal names two origins, so that none can be
	// believed.
	disputed bool

	written int // how many records were applied
	byKey   map[string]journalEntry
}

// journalEntry is one record that counts.
type journalEntry struct {
	record
	at int // its place among all that were written
}

// apply takes in one record: it adds, replaces or ends an entry.
func (e *entries) apply(r record) {
	if e.byKey == nil {
		e.byKey = map[string]journalEntry{}
	}
	e.written++
	put := func(key string) { e.byKey[key] = journalEntry{r, e.written} }
	switch {
	case r.Origin != nil:
		e.disputed = e.disputed || e.origin != nil && *e.origin != *r.Origin
		e.origin = r.Origin
	case r.Cgroup != "":
		put("cgroup " + r.Cgroup)
	case r.Session > 0:
		put("session " + strconv.Itoa(r.Session))
	case r.Subreaper > 0:
		put("subreaper " + strconv.Itoa(r.Subreaper))
	case r.Ended > 0:
		delete(e.byKey, "session "+strconv.Itoa(r.Ended))
		delete(e.byKey, "subreaper "+strconv.Itoa(r.Ended))
	case r.Remove != "":
		put("remove " + r.Remove)
	case r.Removed != "":
		delete(e.byKey, "remove "+r.Removed)
	case r.Mark != "" && r.Relative != 0:
		put(relativeKey(r.Mark, r.Relative))
	case r.Mark != "" && r.Lost != 0:
		delete(e.byKey, relativeKey(r.Mark, r.Lost))
	case r.Mark != "":
		put("mark " + r.Mark)
	case r.Unmark != "":
		delete(e.byKey, "mark "+r.Unmark)
		maps.DeleteFunc(e.byKey, func(key string, _ journalEntry) bool {
			return strings.HasPrefix(key, "relative "+r.Unmark+" ")
		})
	}
}

func relativeKey(mark string, relative uint64) string {
	return "relative " + mark + " " + strconv.FormatUint(relative, 10)
}

// list returns the records that count, in the order in which they were written.
func (e *entries) list() []record {
	sorted := slices.SortedFunc(maps.Values(e.byKey), func(a, b journalEntry) int { return cmp.Compare(a.at, b.at) })
	var records []record
	for _, entry := range sorted {
		records = append(records, entry.record)
	}
	return records
}

// text is a journal that says the same and nothing else.
func (e *entries) text() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	if e.origin != nil {
		if err := encoder.Encode(record{Origin: e.origin}); err != nil {
			return nil, fmt.Errorf("write journal: %w", err)
		}
	}
	for _, r := range e.list() {
		if err := encoder.Encode(r); err != nil {
			return nil, fmt.Errorf("write journal: %w", err)
		}
	}
	return text.Bytes(), nil
}
