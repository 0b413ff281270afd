package forward

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

// A process that is being started has a copy of the listener for a moment.
func TestClose_FreesThePortAlthoughACopyIsOpen(t *testing.T) {
	t.Parallel()
	f, err := Open(func(ctx context.Context, _ uint16) (*net.TCPConn, error) {
		<-ctx.Done() // a server that does not accept
		return nil, ctx.Err()
	}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	address := f.listener.Addr().String()
	if conn, err := net.Dial("tcp", address); err != nil {
		t.Errorf("before: %v", err)
	} else {
		conn.Close()
	}
	copied, err := f.listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	f.Close()
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after: %v, %v", conn, err)
	}
}
