package audit

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// The types of records that matter here (linux/audit.h).
const (
	kindSyscall = 1300
	kindEnd     = 1320 // ends the records of one system call
	kindAccess  = 1423
	kindDomain  = 1424
)

// record is one line of the log: "audit(1795277761.128:8): domain=1fe89312d
// blockers=fs.read_file path="/secret" dev="vda" ino=7".
type record struct {
	kind uint16
	// serial is shared by all records of one system call, if the kernel writes
	// syscall records. Otherwise each record has its own.
	serial uint64
	fields string
}

// parse reads the head of a record. It returns false if the text is no record.
func parse(kind uint16, text string) (record, bool) {
	head, fields, found := strings.Cut(text, "): ")
	rest, isAudit := strings.CutPrefix(head, "audit(")
	_, number, hasSerial := strings.Cut(rest, ":")
	serial, err := strconv.ParseUint(number, 10, 64)
	if !found || !isAudit || !hasSerial || err != nil {
		return record{}, false
	}
	return record{kind: kind, serial: serial, fields: fields}, true
}

// each yields every field with its raw value. The kernel quotes untrusted
// values only if they contain neither quotes nor blanks.
func (r record) each(yield func(key, value string) bool) {
	for rest := strings.TrimLeft(r.fields, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		var field string
		field, rest, _ = strings.Cut(rest, " ")
		key, value, is := strings.Cut(field, "=")
		if is && !yield(key, value) {
			return
		}
	}
}

// text decodes an untrusted value: it is quoted, or hexadecimal if it contains
// bytes that would confuse readers of the log.
func text(value string) (string, bool) {
	if inside, quoted := strings.CutPrefix(value, `"`); quoted {
		return strings.CutSuffix(inside, `"`)
	}
	decoded, err := hex.DecodeString(value)
	return string(decoded), err == nil && len(decoded) > 0
}
