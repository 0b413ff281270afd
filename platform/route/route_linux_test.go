package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// inNamespace is set in the process that has a network of its own.
const inNamespace = "SIDECAR_TEST_ROUTE"

// A route makes addresses local that no interface has, as "ip route add local" does
// for servers behind a balancer. The same addresses are others' without it.
func TestIsOwn_IsTrueOfAddressesThatARouteMakesLocal(t *testing.T) {
	t.Parallel()
	if os.Getenv(inNamespace) != "" {
		lookAtRoutes(t)
		return
	}
	self, err := os.Executable()
	harness.Must(t, err)
	command := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), inNamespace+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if uid := os.Geteuid(); uid != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := command.CombinedOutput()
	switch text := string(out); {
	case len(out) == 0 && err != nil, strings.Contains(text, noRights):
		harness.Skip(t, "user_namespaces", fmt.Sprintf("no network of its own: %v: %s", err, text))
	case err != nil || !strings.Contains(text, "--- PASS"):
		t.Errorf("%v: %s", err, text)
	}
}

// noRights is what the process prints whose namespaces give it nothing.
const noRights = "this process may change nothing in its own network"

func lookAtRoutes(t *testing.T) {
	t.Helper()
	inside, outside := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("198.51.100.7")
	for _, addr := range []netip.Addr{inside, outside} {
		if own, err := IsOwn(addr); own || err != nil {
			t.Errorf("control: %s before the route: %t %v", addr, own, err)
		}
	}
	err := makeLocal(inside, 24)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Fatal(noRights)
	}
	harness.Must(t, err)
	if own, err := IsOwn(inside); !own || err != nil {
		harness.Breach(t, "%s is delivered here: %t %v", inside, own, err)
	}
	if own, err := IsOwn(outside); own || err != nil {
		t.Errorf("control: %s after the route: %t %v", outside, own, err)
	}
}

// makeLocal starts the loopback interface, and does what
// "ip route add local ADDR/BITS dev lo" does.
func makeLocal(addr netip.Addr, bits uint8) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("start lo: %w", err)
	}
	network := netip.PrefixFrom(addr, int(bits)).Masked().Addr().As4()
	const index = 1 // of lo, the first interface of a namespace
	body := []byte{
		unix.AF_INET, bits, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0,
	}
	for attribute, value := range map[uint16][]byte{
		unix.RTA_DST: network[:], unix.RTA_OIF: binary.NativeEndian.AppendUint32(nil, index),
	} {
		body = binary.NativeEndian.AppendUint16(body, uint16(unix.SizeofRtAttr+len(value)))
		body = append(binary.NativeEndian.AppendUint16(body, attribute), value...)
	}
	request := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	request = binary.NativeEndian.AppendUint16(request, unix.RTM_NEWROUTE)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	request = append(append(request, 1, 0, 0, 0, 0, 0, 0, 0), body...) // its number, and from no port
	err = Converse(unix.NETLINK_ROUTE, request, func([]byte) error { return nil })
	switch {
	case errors.Is(err, unix.Errno(0)): // an acknowledgement
		return nil
	case err == nil:
		return errors.New("add a route: the kernel did not acknowledge it")
	}
	return fmt.Errorf("add a route: %w", err)
}
