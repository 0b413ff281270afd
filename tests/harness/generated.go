package harness

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Generated is how many random settings a test tries, and the source that it
// makes them from. SIDECAR_EXPLAIN_POLICIES sets the number. The log has the
// seed, and SIDECAR_SEED makes the same settings again, in the same turn.
func Generated(t testing.TB, usual int, stream uint64) (int, *rand.Rand) {
	t.Helper()
	if given := os.Getenv("SIDECAR_EXPLAIN_POLICIES"); given != "" {
		var err error
		usual, err = strconv.Atoi(given)
		Must(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("SIDECAR_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		Must(t, err)
	}
	t.Logf("SIDECAR_SEED=%d SIDECAR_TURN=%s", seed, os.Getenv("SIDECAR_TURN"))
	return usual, rand.New(rand.NewPCG(seed, stream))
}
