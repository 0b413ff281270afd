package compile

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// A key without a row would be tightened by nobody, and a strict value of
// another type equals none.
func TestScalars_EveryKeyOfASingleValueHasARow(t *testing.T) {
	t.Parallel()
	var missing []string
	for _, key := range document.Keys() {
		if document.IsList(key.Name) || key.Name == credentialsKey {
			continue
		}
		i := slices.IndexFunc(scalars, func(row scalar) bool { return row.key == key.Name })
		if i < 0 {
			missing = append(missing, key.Name)
			continue
		}
		var values document.Sandbox
		if strict := scalars[i].strict; strict != nil {
			value := reflect.New(reflect.TypeOf(strict))
			value.Elem().Set(reflect.ValueOf(strict))
			key.Set(&values, value) // it panics if the type is another one
			if !scalars[i].isStrict(&values) {
				t.Errorf("%s: %v is not strict", key.Name, strict)
			}
		}
		if scalars[i].isStrict(&document.Sandbox{}) {
			t.Errorf("%s: what is not set is strict", key.Name)
		}
	}
	if want := []string{enabledKey, "mode", applyToKey}; !slices.Equal(missing, want) {
		t.Errorf("keys without a row: %q, want %q", missing, want)
	}
}
