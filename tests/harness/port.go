package harness

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// nextPort is below the ports that the kernel chooses. No port is used twice.
var nextPort atomic.Int64

// FreePort is a port of this machine that nobody uses now.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, most = 20_000, 10_000
	for range most {
		port := first + (int(nextPort.Add(1))+os.Getpid())%most
		if listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
