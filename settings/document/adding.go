package document

import (
	"reflect"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// A list of variables replaces the one of the layers above it in the table of
// the reference. If each of its entries begins with "+", it adds to that list.

const addingMark = "+"

// Adds reports whether a list of variables adds to the one that would count
// without it.
func Adds(list []string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(entry string) bool {
		return !strings.HasPrefix(entry, addingMark)
	})
}

// Added are the names of a list that adds.
func Added(list []string) []string {
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = strings.TrimPrefix(entry, addingMark)
	}
	return names
}

// OfVariables reports whether a key is allowed_env_vars, for a kind of session or
// not.
func OfVariables(key string) bool {
	_, name := SplitKey(key)
	return name == "allowed_env_vars"
}

// markedVariables completes a list of variables that was just decoded. An entry
// with the mark beside entries without it is one of a list that replaces.
func (d *decoder) markedVariables(field reflect.Value, key string, at []Position) {
	list := field.Interface().([]string)
	plain := slices.IndexFunc(list, func(entry string) bool { return !strings.HasPrefix(entry, addingMark) })
	if plain < 0 {
		return
	}
	for i, entry := range list {
		if strings.HasPrefix(entry, addingMark) {
			d.reportAt(at[i], SeverityWarning, key, "%s: this list replaces the others, as %s has no %s before it",
				display.Quote(entry), display.Quote(list[plain]), addingMark)
		}
	}
	field.Set(reflect.ValueOf(Added(list)))
}

// joinVariables is the value of a key in this file if a later block of it, that
// of the running platform, sets it too.
func (d *decoder) joinVariables(l Key, value reflect.Value, span Span) (reflect.Value, Span) {
	before, set := l.Get(&d.Values)
	if !OfVariables(l.Name) || !set || !Adds(value.Interface().([]string)) {
		return value, span
	}
	list, added := before.Interface().([]string), value.Interface().([]string)
	if !Adds(list) {
		added = Added(added)
	}
	span.Elements = slices.Concat(d.Spans[l.Name].Elements, span.Elements)
	return reflect.ValueOf(slices.Concat(list, added)), span
}

// refuseAdding reports entries that add, in a list that only bounds. They do not
// count.
func (d *decoder) refuseAdding() {
	for _, l := range allKeys() {
		value, set := l.Get(&d.Values)
		if !OfVariables(l.Name) || !set || !Adds(value.Interface().([]string)) {
			continue
		}
		d.reportAt(d.Spans[l.Name].At, SeverityError, l.Name,
			"what is required adds nothing: write the names without %s", addingMark)
		l.Set(&d.Values, reflect.ValueOf([]string{}))
		span := d.Spans[l.Name]
		span.Elements = []Position{}
		d.Spans[l.Name] = span
	}
}
