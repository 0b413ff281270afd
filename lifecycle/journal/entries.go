//go:build unix

package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Origin identifies the place where the process ids in a journal have a
// meaning. The zero value is an unknown place, and equals no other.
type Origin struct {
	// Boot identifies this start of the machine.
	Boot string `json:"boot,omitempty"`
	// PIDNamespace names the process id namespace. The kernel reuses the number
	// of one that has ended, so Init adds the start time of its process 1. Both
	// are empty on systems without such namespaces.
	PIDNamespace string `json:"pidNamespace,omitempty"`
	Init         string `json:"init,omitempty"`
}

// is reports whether both are known and equal.
func (o Origin) is(other Origin) bool { return o.Boot != "" && o == other }

// entries are the records of a journal that still count. The zero value is
// empty.
type entries struct {
	// origin is that of the journal's writer; nil if the journal does not say.
	origin *Origin
	// disputed is true if a journal names two origins: then neither is trusted.
	disputed bool

	written int // how many records were applied
	things  map[thing]map[string]journalEntry
}

// thing identifies what a record is about. Its parts are ended with it.
type thing struct{ kind, key string }

// journalEntry is one record that counts.
type journalEntry struct {
	Record
	at int // its place among all records that were written
}

// apply adds, replaces or ends an entry. It reports whether the record has a
// meaning.
func (e *entries) apply(r Record) bool {
	e.written++
	of := thing{r.Kind, r.Key}
	switch {
	case r.Origin != nil:
		e.disputed = e.disputed || e.origin != nil && *e.origin != *r.Origin
		e.origin = r.Origin
	case r.Kind == "" || r.Key == "":
		return false
	case r.Over && r.Part == "":
		delete(e.things, of)
	case r.Over:
		delete(e.things[of], r.Part)
	default:
		if e.things == nil {
			e.things = map[thing]map[string]journalEntry{}
		}
		if e.things[of] == nil {
			e.things[of] = map[string]journalEntry{}
		}
		e.things[of][r.Part] = journalEntry{r, e.written}
	}
	return true
}

// list returns the records that count, in the order in which they were written.
func (e *entries) list() []Record {
	var sorted []journalEntry
	for _, parts := range e.things {
		sorted = slices.AppendSeq(sorted, maps.Values(parts))
	}
	slices.SortFunc(sorted, func(a, b journalEntry) int { return cmp.Compare(a.at, b.at) })
	var records []Record
	for _, entry := range sorted {
		records = append(records, entry.Record)
	}
	return records
}

// text is a journal with the records that count and nothing else.
func (e *entries) text() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	if e.origin != nil {
		if err := encoder.Encode(Record{Origin: e.origin}); err != nil {
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
