package journal

import (
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
	return Origin{Boot: boot}
})
