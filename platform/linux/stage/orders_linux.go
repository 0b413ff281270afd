package stage

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// Orders returns the ruleset as readRuleset reads it: JSON, then the filter as
// it is, which is longer than all the rest.
func (r Ruleset) Orders() (handshake.Orders, error) {
	message, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write ruleset: %w", err)
	}
	return append(message, r.Program...), nil
}

func readRuleset(orders handshake.Orders) (Ruleset, error) {
	var r Ruleset
	decoder := json.NewDecoder(bytes.NewReader(orders))
	if err := decoder.Decode(&r); err != nil {
		return Ruleset{}, fmt.Errorf("read ruleset: %w", err)
	}
	r.Program = orders[decoder.InputOffset():]
	return r, nil
}
