package seccomp

import "testing"

// The calls that could send or receive a packet in the machine's network, by
// number.
func TestShared_LeavesTheSupervisorsConnectionsAlone(t *testing.T) {
	t.Parallel()
	const inherited = 0xabcdef0000000000 // the half of a register that the kernel ignores
	const amd64, i386, arm64, arm = 0xc000003e, 0x40000003, 0xc00000b7, 0x40000028
	for _, test := range []struct {
		goarch   string
		arch     uint32
		nr       int32
		args     [6]uint64
		answer   string
		whatItIs string
	}{
		{"amd64", amd64, 41, [6]uint64{2, 1}, "allow", "TCP"},
		{"amd64", amd64, 41, [6]uint64{10, 0x80801, 6}, "allow", "TCP of IPv6, in non-blocking mode"},
		{"amd64", amd64, 41, [6]uint64{2, 1, 262}, "EPROTONOSUPPORT", "MPTCP"},
		{"amd64", amd64, 41, [6]uint64{2, 1, 132}, "EACCES", "SCTP"},
		{"amd64", amd64, 41, [6]uint64{2, 1, 256}, "EACCES", "SMC"},
		{"amd64", amd64, 41, [6]uint64{2, 5, 132}, "EACCES", "SCTP of many"},
		{"amd64", amd64, 41, [6]uint64{2, 2}, "ask supervisor", "UDP"},
		{"amd64", amd64, 41, [6]uint64{2, 2, 136}, "EACCES", "UDP-Lite"},
		{"amd64", amd64, 41, [6]uint64{2, 2, 1}, "EACCES", "ICMP"},
		{"amd64", amd64, 41, [6]uint64{2, 3, 1}, "EACCES", "raw ICMP"},
		{"amd64", amd64, 41, [6]uint64{2, 3, 255}, "EACCES", "raw IP"},
		{"amd64", amd64, 41, [6]uint64{2, 10}, "EACCES", "SOCK_PACKET"},
		{"amd64", amd64, 41, [6]uint64{2, 6, 33}, "EACCES", "DCCP"},
		{"amd64", amd64, 41, [6]uint64{16, 3, 0}, "allow", "NETLINK_ROUTE"},
		{"amd64", amd64, 41, [6]uint64{16, 3, 9}, "EACCES", "NETLINK_AUDIT"},
		{"amd64", amd64, 41, [6]uint64{17, 3, 0}, "EACCES", "AF_PACKET"},
		{"amd64", amd64, 41, [6]uint64{43, 1, 0}, "EACCES", "AF_SMC"},
		{"amd64", amd64, 41, [6]uint64{1, 1}, "allow", "AF_UNIX"},
		{"amd64", amd64, 41, [6]uint64{1, 2}, "EACCES", "AF_UNIX for datagrams"},
		{"amd64", i386, 359, [6]uint64{2, 1}, "allow", "TCP by int 0x80"},
		{"amd64", i386, 102, [6]uint64{1}, "EACCES", "socketcall"},
		{"arm64", arm64, 198, [6]uint64{2, 3, 1}, "EACCES", "raw ICMP"},
		{"amd64", amd64, 42, [6]uint64{}, "ask supervisor", "connect"},
		{"amd64", amd64, 49, [6]uint64{}, "ask supervisor", "bind"},
		{"amd64", amd64, 50, [6]uint64{}, "ask supervisor", "listen"},
		{"amd64", i386, 363, [6]uint64{}, "ask supervisor", "listen by int 0x80"},
		{"arm64", arm64, 201, [6]uint64{}, "ask supervisor", "listen"},
		{"arm64", arm, 284, [6]uint64{}, "ask supervisor", "listen of 32 bits"},
		{"amd64", amd64, 44, [6]uint64{3, 0, 0, 0x20000000}, "EOPNOTSUPP", "sendto with Fast Open"},
		{"amd64", amd64, 44, [6]uint64{
			3, 0, 0, inherited | 0x20004000,
		}, "EOPNOTSUPP", "sendto with Fast Open and more"},
		{"amd64", amd64, 44, [6]uint64{3, 0, 0, 0x4000}, "allow", "sendto"},
		{"amd64", amd64, 46, [6]uint64{3, 0, 0x20000000}, "EOPNOTSUPP", "sendmsg with Fast Open"},
		{"amd64", amd64, 46, [6]uint64{3, 0, 0x4000}, "allow", "sendmsg"},
		{"amd64", amd64, 307, [6]uint64{3, 0, 1, 0x20000000}, "EOPNOTSUPP", "sendmmsg with Fast Open"},
		{"amd64", i386, 345, [6]uint64{3, 0, 1, 0x20000000}, "EOPNOTSUPP", "sendmmsg with Fast Open by int 0x80"},
		{"arm64", arm64, 211, [6]uint64{3, 0, 0x20000000}, "EOPNOTSUPP", "sendmsg with Fast Open"},
		{"amd64", amd64, 54, [6]uint64{3, 0, 4}, "EPERM", "IP_OPTIONS"},
		{"amd64", amd64, 54, [6]uint64{3, inherited, inherited | 4}, "EPERM", "IP_OPTIONS with a high half"},
		{"amd64", amd64, 54, [6]uint64{3, 0, 50}, "EPERM", "IP_UNICAST_IF"},
		{"amd64", amd64, 54, [6]uint64{3, 0, 11}, "ask supervisor", "IP_RECVERR"},
		{"amd64", amd64, 54, [6]uint64{3, 41, 57}, "EPERM", "IPV6_RTHDR"},
		{"amd64", amd64, 54, [6]uint64{3, 41, 50}, "EPERM", "IPV6_PKTINFO"},
		{"amd64", amd64, 54, [6]uint64{3, 41, 6}, "EPERM", "IPV6_2292PKTOPTIONS"},
		{"amd64", amd64, 54, [6]uint64{3, 41, 26}, "ask supervisor", "IPV6_V6ONLY"},
		{"amd64", amd64, 54, [6]uint64{3, 1, 25}, "EPERM", "SO_BINDTODEVICE"},
		{"amd64", amd64, 54, [6]uint64{3, 1, inherited | 62}, "EPERM", "SO_BINDTOIFINDEX"},
		{"amd64", amd64, 54, [6]uint64{3, 1, 2}, "allow", "SO_REUSEADDR"},
		{"amd64", amd64, 54, [6]uint64{3, 6, 1}, "allow", "TCP_NODELAY"},
		{"amd64", amd64, 45, [6]uint64{3, 1, 1, 0, 0}, "allow", "recv"},
		{"amd64", amd64, 45, [6]uint64{3, 1, 1, 0, 1 << 40}, "ask supervisor", "recvfrom"},
		{"amd64", i386, 366, [6]uint64{3, 0, 4}, "EPERM", "IP_OPTIONS by int 0x80"},
		{"arm64", arm64, 208, [6]uint64{3, 41, 57}, "EPERM", "IPV6_RTHDR"},
		{"arm64", arm, 294, [6]uint64{3, 41, 57}, "EPERM", "IPV6_RTHDR of 32 bits"},
	} {
		filtering := Filtering{Hosts: true, Sockets: true, Shared: true, Offline: true}
		got := run(t, filter(t, test.goarch, filtering), seccompData{nr: test.nr, arch: test.arch, args: test.args})
		if got.String() != test.answer {
			t.Errorf("%s: %s: got %s, want %s", test.goarch, test.whatItIs, got, test.answer)
		}
	}
}
