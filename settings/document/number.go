package document

import (
	"reflect"
	"strconv"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// ranges are the numbers that a key may have, by the key in a block.
var ranges = map[string]struct{ least, most int }{
	"limits.processes": {1, 1 << 22}, // the kernel's PID_MAX_LIMIT
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
