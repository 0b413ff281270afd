package lifecycle

import "sync"

// Here is where this process's own numbers mean something. What cannot be found
// out stays empty: then nothing is ever taken for the same.
var Here = sync.OnceValue(func() Origin {
	boot, err := bootID()
	if err != nil {
		return Origin{}
	}
	return Origin{Boot: boot}
})

// autogroupID is empty: this system does not tell from which setsid(2) a
// process descends.
func autogroupID(int) string { return "" }
