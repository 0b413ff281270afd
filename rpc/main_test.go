//go:build unix

package rpc

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

func TestMain(m *testing.M) { platformtest.Main(m, platformtest.ConfineFake) }
