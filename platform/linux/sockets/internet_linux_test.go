package sockets

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify/notifytest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// On a kernel whose Landlock decides about Unix sockets, only internet sockets
// are connected here, and to where the decision leads them.
func TestInternetOnly_LeavesOtherFamiliesToTheKernel(t *testing.T) {
	t.Parallel()
	skip := func(reason string) { harness.Skip(t, "user_notification", reason) }
	if err := errors.Join(notify.Reach(), notify.ReachDescriptors()); err != nil {
		skip(err.Error())
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	relay := server.Addr().(*net.TCPAddr).AddrPort()
	name := netip.MustParseAddrPort("198.18.3.4:443")
	refused := netip.MustParseAddrPort("198.18.3.5:443")
	caller := notifytest.NewCaller(t, skip, unix.SYS_CONNECT)
	session, err := notify.Supervise(caller.Listener, map[notify.Key]notify.Handler{
		{Arch: auditArch, Number: unix.SYS_CONNECT}: {Handle: InternetOnly(func(i *Internet) (unix.Errno, bool) {
			to, ok := i.To()
			switch {
			case !ok:
				return i.Connect()
			case i.Timeout(time.Hour) != time.Hour:
				return unix.EINPROGRESS, true
			case to == name:
				return i.ConnectTo(relay)
			}
			return unix.EACCES, true
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()

	stage := &stage{Caller: caller, t: t, dir: shortDir(t)}
	stage.outside(stage.path("unix"))
	stage.expect(stage.path("unix"), nil)
	stage.expect(stage.path("missing"), unix.ENOENT)

	connect := func(family, flags int, to netip.AddrPort) (err error) {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var address unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
		if family == unix.AF_INET {
			address = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
		}
		caller.Do(func() { err = unix.Connect(fd, address) })
		return err
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if err := connect(family, 0, name); err != nil {
			t.Errorf("family %d: %v", family, err)
		}
		if err := connect(family, 0, refused); !errors.Is(err, unix.EACCES) {
			t.Errorf("family %d, refused: %v", family, err)
		}
		if err := connect(family, unix.SOCK_NONBLOCK, name); !errors.Is(err, unix.EINPROGRESS) {
			t.Errorf("family %d, in non-blocking mode: %v", family, err)
		}
	}
}
