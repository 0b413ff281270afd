package journal

import (
	"os"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Here identifies the place of this process. A field that cannot be found out
// stays empty, and then this place equals no other.
var Here = sync.OnceValue(func() Origin {
	boot, err := proc.BootID()
	if err != nil {
		return Origin{}
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Origin{}
	}
	init, _ := proc.StartTime(1) // hidden from some users (hidepid), and then from this user's next sidecar too
	return Origin{Boot: boot, PIDNamespace: namespace, Init: init}
})
