package lifecycle

import "sync"

// here is where this process's own numbers mean something. What cannot be found
// out stays empty: then nothing is ever taken for the same.
var here = sync.OnceValue(func() origin {
	boot, err := bootID()
	if err != nil {
		return origin{}
	}
	return origin{Boot: boot}
})

// autogroupID is empty: this system does not tell from which setsid(2) a
// process descends.
func autogroupID(int) string { return "" }
