package harness

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Turn reports whether the i-th of n variants of a test runs, of which each would
// find much the same. ".ci/run" sets SIDECAR_TURN to a number that depends on the
// commit if a change touches all tests: then one of n variants runs. Anywhere else
// all of them do.
func Turn(t testing.TB, i, n int) bool {
	t.Helper()
	runs, err := isTurn(os.Getenv("SIDECAR_TURN"), i, n)
	Must(t, err)
	return runs
}

func isTurn(turn string, i, n int) (bool, error) {
	if turn == "" {
		return true, nil
	}
	number, err := strconv.ParseUint(turn, 10, 32)
	if err != nil {
		return false, fmt.Errorf("SIDECAR_TURN: %w", err)
	}
	return (number+uint64(i))%uint64(n) == 0, nil
}
