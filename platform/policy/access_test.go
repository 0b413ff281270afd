package policy

import (
	"encoding/json"
	"testing"
)

func TestAccess_NamesRoundTrip(t *testing.T) {
	t.Parallel()
	for access := range Access(16) {
		data, err := json.Marshal(access)
		if err != nil {
			t.Fatal(err)
		}
		var back Access
		if err := json.Unmarshal(data, &back); err != nil || back != access {
			t.Errorf("%s: %s became %s, %v", access, data, back, err)
		}
	}
	if got := (ReadWrite | Device).String(); got != "read,write,execute,device" {
		t.Error(got)
	}
	if got := Access(0).String(); got != "none" {
		t.Error(got)
	}
}

func TestAccess_UnknownNamesAreErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`["read", "fly"]`, `"read"`, `[1]`} {
		var access Access
		if err := json.Unmarshal([]byte(text), &access); err == nil {
			t.Errorf("%s is read as %s", text, access)
		}
	}
}
