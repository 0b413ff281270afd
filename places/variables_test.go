package places

import (
	"slices"
	"testing"
)

// The variables that move the directories of state are those that are listed.
func TestStateVariables_AreAllThatMoveTheState(t *testing.T) {
	t.Parallel()
	usual := map[string]string{
		"HOME": "/home/u", "XDG_STATE_HOME": "/state", "XDG_RUNTIME_DIR": "/run/u", "XDG_CONFIG_HOME": "/config",
		"XDG_CACHE_HOME": "/cache", "XDG_DATA_HOME": "/data", "TMPDIR": "/tmp/u",
	}
	at := func(env map[string]string) [3]string {
		u := Of(func(name string) string { return env[name] })
		return [3]string{u.Runtime(), u.State(), u.Run()}
	}
	for name := range usual {
		moves := false
		for _, unset := range []string{"", "XDG_STATE_HOME"} {
			before, after := map[string]string{}, map[string]string{}
			for other, value := range usual {
				if other != unset {
					before[other], after[other] = value, value
				}
			}
			after[name] = "/moved"
			moves = moves || name != unset && at(before) != at(after)
		}
		if moves != slices.Contains(StateVariables(), name) {
			t.Errorf("%s moves the state: %t", name, moves)
		}
	}
}
