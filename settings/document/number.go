package document

import (
	"reflect"
	"regexp"
	"strconv"
	"sync"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// ranges are the numbers that a key may have, by the key in a block.
var ranges = map[string]struct{ least, most int }{
	"limits.processes":   {1, 1 << 22}, // the kernel's PID_MAX_LIMIT
	"limits.connections": {1, 2048},    // each has 32 KiB then; with less, a loopback interface stalls
	"limits.cpu_weight":  {1, 10000},   // the kernel's range of cpu.weight
}

// Range is the least and the greatest number that a key may have.
func Range(key string) (least, most int) {
	_, name := SplitKey(key)
	allowed, known := ranges[name]
	if !known {
		panic("BUG(sandbox-sidecar): no range for the settings key " + key)
	}
	return allowed.least, allowed.most
}

// number decodes a whole number. A number outside of the range counts as little
// as another type.
func (d *decoder) number(value hujson.Value, field reflect.Value, key string) bool {
	least, most := Range(key)
	found := describe(value)
	if literal, is := value.Value.(hujson.Literal); is && literal.Kind() == '0' {
		found = display.Quote(string(literal))
		if n, err := strconv.Atoi(string(literal)); err == nil && n >= least && n <= most {
			field.Set(reflect.ValueOf(&n))
			return true
		}
	}
	d.report(value, SeverityError, key, "expected a whole number from %d to %d, found %s", least, most, found)
	return false
}

// MemoryPattern matches amounts of memory. It is a regular expression of JSON
// Schema, too.
const MemoryPattern = `^([0-9]{1,6})([MG%])$`

// Compiled when it is needed: every stage starts with this package, too.
var memoryPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(MemoryPattern) })

// leastMemory is what a session needs for a shell and some programs.
const leastMemory = 64 << 20

// ParseMemory reads an amount of memory, in bytes or in percent of the machine's.
func ParseMemory(text string) (bytes int64, percent int, valid bool) {
	match := memoryPattern().FindStringSubmatch(text)
	if match == nil {
		return 0, 0, false
	}
	n, err := strconv.Atoi(match[1])
	switch match[2] {
	case "%":
		return 0, n, err == nil && n >= 1 && n <= 100
	case "M":
		bytes = int64(n) << 20
	default:
		bytes = int64(n) << 30
	}
	return bytes, 0, err == nil && bytes >= leastMemory
}

// memory decodes an amount of memory.
func (d *decoder) memory(value hujson.Value, field reflect.Value, key string) bool {
	found := describe(value)
	if literal, is := value.Value.(hujson.Literal); is && literal.Kind() == '"' {
		text := literal.String()
		if _, _, valid := ParseMemory(text); valid {
			field.Set(reflect.ValueOf(&text))
			return true
		}
		found = display.Quote(text)
	}
	d.report(value, SeverityError, key, `expected 64M or more, as "512M" or "8G", or "1%%" to "100%%", found %s`, found)
	return false
}
