package journal

import (
	"os"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Here is where this process's own numbers mean something. What cannot be found
// out stays empty: then nothing is ever taken for the same.
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
