package platform_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestUnsupported_ConfinesNothing(t *testing.T) {
	t.Parallel()
	u := platform.Unsupported{System: "plan9", Executable: "/bin/sidecar"}
	if c, err := u.Confine(&policy.Policy{Restricted: true}, platform.Hooks{}); !errors.Is(err,
		platform.ErrUnavailable) || c.Orders != nil {
		t.Errorf("confine: %s, %v", c.Orders, err)
	}
	if _, err := platform.RefuseToConfine(nil); !errors.Is(err, platform.ErrUnavailable) {
		t.Errorf("the stage confines itself: %v", err)
	}
	protections := u.Probe(context.Background())
	for _, name := range platform.Protections {
		if p, ok := protections[name]; name != platform.ProcessTracking &&
			(!ok || p.Status != platform.Absent || p.Detail == "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if path, argv := u.Stage(); path != u.Executable || len(argv) != 2 || argv[1] != "stage" || u.Name() != "plan9" {
		t.Errorf("stage is %s %v of %s", path, argv, u.Name())
	}
}
