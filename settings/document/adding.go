package document

import (
	"reflect"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// A list of variables replaces the one of the layers above it in the table of
// the reference. If each of its entries begins with "+", it adds to that list.

// AddingMark is before each name of a list that adds.
const AddingMark = "+"

// Adds reports whether a list of variables adds to the one that would count
// without it.
func Adds(list []string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(entry string) bool {
		return !strings.HasPrefix(entry, AddingMark)
	})
}

// Added are the names of a list that adds.
func Added(list []string) []string {
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = strings.TrimPrefix(entry, AddingMark)
	}
	return names
}

// OfVariables reports whether a key is allowed_env_vars, for a kind of session or
// not.
func OfVariables(key string) bool {
	_, name := SplitKey(key)
	return name == "allowed_env_vars"
}

// markedVariables completes a list of variables that was just decoded, and returns
// the places of its entries. An entry with the mark beside entries without it is
// one of a list that replaces. A list that bounds cannot add: no entry with the
// mark counts.
func (d *decoder) markedVariables(field reflect.Value, key string, at []Position) []Position {
	list := field.Interface().([]string)
	if Adds(list) && !d.bounds {
		return at
	}
	plain := slices.IndexFunc(list, func(entry string) bool { return !strings.HasPrefix(entry, AddingMark) })
	names, places := []string{}, []Position{}
	for i, entry := range list {
		name, marked := strings.CutPrefix(entry, AddingMark)
		if marked && d.bounds {
			d.reportAt(at[i], SeverityError, key, "%s: what is required adds nothing: write the name without %s",
				display.Quote(entry), AddingMark)
			continue
		}
		if marked {
			d.reportAt(at[i], SeverityWarning, key, "%s: this list replaces the others, as %s has no %s before it",
				display.Quote(entry), display.Quote(list[plain]), AddingMark)
		}
		names, places = append(names, name), append(places, at[i])
	}
	field.Set(reflect.ValueOf(names))
	return places
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
