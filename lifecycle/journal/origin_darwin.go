package journal

import (
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
	return Origin{Boot: boot}
})
