package policy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Access is a set of operations on a path and, if it is a directory, on
// everything below it.
type Access uint8

const (
	// Read opens files for reading and lists directories.
	Read Access = 1 << iota
	// Write opens files for writing, truncates, creates, removes, renames and
	// links. It never creates device nodes.
	Write
	// Execute runs files as programs.
	Execute
	// Device performs ioctls on character and block devices. Terminals that
	// were opened before the session was confined do not need it, such as the
	// session's own standard streams.
	Device
)

// ReadWrite is the access of a project directory, a temporary directory and a
// path granted for writing.
const ReadWrite = Read | Write | Execute

var accessNames = []struct {
	bit  Access
	name string
}{{Read, "read"}, {Write, "write"}, {Execute, "execute"}, {Device, "device"}}

// Has reports whether a holds every access of b.
func (a Access) Has(b Access) bool { return a&b == b }

// Names lists the accesses in a fixed order.
func (a Access) Names() []string {
	names := []string{}
	for _, n := range accessNames {
		if a.Has(n.bit) {
			names = append(names, n.name)
		}
	}
	return names
}

// String joins the names with commas; the empty set is "none".
func (a Access) String() string {
	if a == 0 {
		return "none"
	}
	return strings.Join(a.Names(), ",")
}

// MarshalJSON writes the names as an array.
func (a Access) MarshalJSON() ([]byte, error) { return json.Marshal(a.Names()) }

// UnmarshalJSON reads what MarshalJSON writes; an unknown name is an error.
func (a *Access) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("read access names: %w", err)
	}
	*a = 0
next:
	for _, name := range names {
		for _, n := range accessNames {
			if n.name == name {
				*a |= n.bit
				continue next
			}
		}
		return fmt.Errorf("read access names: unknown access %q", name)
	}
	return nil
}
