package document

import (
	"fmt"
	"strings"
	"testing"
)

// Of a file of ours no key is left out silently: each is a setting, or stops
// tools.
func TestDecode_AFileOfOursHasNoOtherKeys(t *testing.T) {
	t.Parallel()
	many := func(format string, count int) string {
		var members []string
		for i := range count {
			members = append(members, fmt.Sprintf(format, i))
		}
		return strings.Join(members, ", ")
	}
	deep := strings.Repeat(`{"a": `, 400) + "1" + strings.Repeat("}", 400)
	for name, test := range map[string]struct {
		text  string
		stops bool
	}{
		"nothing":                    {`{}`, false},
		"a setting":                  {`{"terminal": {"sandbox": {"enabled": true}}}`, false},
		"nulls":                      {`{"terminal": null, "linux": null}`, false},
		"an unknown null":            {`{"x": null}`, true},
		"an unknown string":          {`{"x": "y"}`, true},
		"an unknown array":           {`{"x": []}`, true},
		"deep nesting":               {`{"x": ` + deep + `}`, true},
		"terminal of another type":   {`{"terminal": []}`, true},
		"a platform of another type": {`{"linux": 1}`, true},
		"another platform's, too":    {`{"macos": "x"}`, true},
		"a null that is repeated":    {`{"terminal": null, "terminal": null}`, true},
		"a thousand unknown":         {`{` + many(`"x%d": 1`, 1001) + `}`, true},
		"unknown behind a thousand":  {`{"terminal": {` + many(`"$schema": %d`, 1000) + `, "x": 1}}`, true},
		"unknown behind schemas":     {`{` + many(`"$schema": %d`, 1000) + `, "x": 1}`, true},
	} {
		block, problem := Decode([]byte(test.text), "linux", Sidecar)
		if problem != nil {
			t.Errorf("%s: %v", name, problem)
			continue
		}
		if stops := block.FirstError != nil; stops != test.stops {
			t.Errorf("%s: stops tools: %t, want %t; said %v", name, stops, test.stops, block.Problems)
		}
	}
}
