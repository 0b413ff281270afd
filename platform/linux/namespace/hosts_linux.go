package namespace

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
)

// ResolverConfig is the file that tells programs which DNS server to ask
// (resolv.conf(5)), and hostsFile has names that they do not ask about.
const (
	ResolverConfig = "/etc/resolv.conf"
	hostsFile      = "/etc/hosts"
)

// resolverConfig has no domains to search: programs would ask for every name
// below them, too.
var resolverConfig = "nameserver " + loopback.Resolver.String() + "\nsearch .\noptions edns0\n"

// openHosts makes what the sidecar needs in this network namespace to connect
// the session to hosts: addresses for names, and sockets for the resolver and
// the relay. A socket stays in the namespace that it was made in. openHosts then
// directs programs to the resolver.
func openHosts() ([]handshake.PassedFile, error) {
	if err := addPrefix(); err != nil {
		return nil, fmt.Errorf("give the loopback interface addresses for names: %w", err)
	}
	var passed []handshake.PassedFile
	for _, socket := range []struct {
		kind handshake.Passed
		open func() (int, error)
	}{
		{canary.PassedResolverUDP, func() (int, error) { return bound(unix.SOCK_DGRAM, loopback.ResolverPort) }},
		{canary.PassedResolverTCP, func() (int, error) { return bound(unix.SOCK_STREAM, loopback.ResolverPort) }},
		{canary.PassedRelay, openRelay},
	} {
		fd, err := socket.open()
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", socket.kind, err)
		}
		passed = append(passed, handshake.PassedFile{Kind: socket.kind, FD: fd})
	}
	return passed, coverNames()
}

// addPrefix gives the loopback interface a second address, whose prefix then is
// the session's own as a whole (netdevice(7)).
func addPrefix() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	mask := [4]byte{}
	for bit := range loopback.Own.Bits() {
		mask[bit/8] |= 0x80 >> (bit % 8)
	}
	for _, step := range []struct {
		command uint
		value   [4]byte
	}{{unix.SIOCSIFADDR, loopback.Gateway.As4()}, {unix.SIOCSIFNETMASK, mask}} {
		request, err := unix.NewIfreq("lo:1")
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(step.value[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.command, request); err != nil {
			return err
		}
	}
	return nil
}

// backlog is that of net.Listen, at most; the kernel lowers it.
const backlog = 4096

func bound(kind, port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.Resolver.As4(), Port: port})
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openRelay opens the relay at all addresses of the session's own, by IPv6 too
// if the kernel has that, at any port.
func openRelay() (int, error) {
	const flags = unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fd, err := unix.Socket(unix.AF_INET6, flags, 0)
	if err == nil {
		if err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0),
			unix.Bind(fd, &unix.SockaddrInet6{}), unix.Listen(fd, backlog)); err == nil {
			return fd, nil
		}
		unix.Close(fd)
	}
	if fd, err = unix.Socket(unix.AF_INET, flags, 0); err != nil {
		return -1, err
	}
	if err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{}), unix.Listen(fd, backlog)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// coverNames mounts files of the session's own over those that say how names
// are found.
func coverNames() error {
	files, err := newTmpfs()
	if err != nil {
		return err
	}
	defer unix.Close(files)
	contents := map[string]string{ResolverConfig: resolverConfig}
	if outside, err := os.ReadFile(hostsFile); err == nil {
		contents[hostsFile] = ownHosts(string(outside))
	}
	for path, content := range contents {
		if err := writeAt(files, filepath.Base(path), []byte(content)); err != nil {
			return err
		}
	}
	if err := unix.MountSetattr(files, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the files for names read-only: %w", err)
	}
	var names []string
	paths := slices.Sorted(maps.Keys(contents))
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	trees, err := cloneFiles(files, names)
	defer closeTrees(trees)
	if err != nil {
		return err
	}
	for i, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("direct programs to the resolver: %w", err)
		}
		if err := cover(trees[i], real); err != nil {
			return err
		}
		if found, err := os.ReadFile(path); err != nil || string(found) != contents[path] {
			return errors.Join(fmt.Errorf("direct programs to the resolver: %s is not the session's own", path), err)
		}
	}
	return nil
}

// ownHosts keeps those lines of /etc/hosts that lead to the loopback interface,
// which is the session's own. The resolver is asked about all other names.
func ownHosts(outside string) string {
	text := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	const most = 64 << 10
	for line := range strings.Lines(outside) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(text)+len(line) > most {
			continue
		}
		if addr, err := netip.ParseAddr(fields[0]); err == nil && addr.IsLoopback() {
			text += strings.TrimSuffix(line, "\n") + "\n"
		}
	}
	return text
}
