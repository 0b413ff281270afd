package seccomp

// These rules are for a session that reaches hosts through the supervisor,
// although it shares the network of the machine; see
// docs/design/network-by-host.md. The only sockets of the internet that it can
// make are of TCP. The supervisor connects them, so whatever else gives a packet
// a destination, or receives one, is closed.

// The protocols, levels and options of the internet (linux/in.h, linux/in6.h,
// asm-generic/socket.h). They are the same on all architectures that this
// package knows.
const (
	socketDatagram           = 2
	protocolTCP, protocolUDP = 6, 17
	protocolMPTCP            = 262

	levelSocket, levelIP, levelIPv6 = 1, 0, 41
	bindToDevice, bindToIndex       = 25, 62 // SO_BINDTODEVICE, SO_BINDTOIFINDEX

	sendFastOpen = 0x20000000 // MSG_FASTOPEN
)

// harmlessOptions are those of IP that change no packet's way: type of service,
// hops, path MTU, errors, and what is received beside a packet.
var harmlessOptions = []struct{ level, option uint32 }{
	{levelIP, 1},    // IP_TOS
	{levelIP, 2},    // IP_TTL
	{levelIP, 8},    // IP_PKTINFO, which only adds to what is received
	{levelIP, 10},   // IP_MTU_DISCOVER
	{levelIP, 11},   // IP_RECVERR
	{levelIP, 24},   // IP_BIND_ADDRESS_NO_PORT
	{levelIPv6, 16}, // IPV6_UNICAST_HOPS
	{levelIPv6, 23}, // IPV6_MTU_DISCOVER
	{levelIPv6, 25}, // IPV6_RECVERR
	{levelIPv6, 26}, // IPV6_V6ONLY
	{levelIPv6, 49}, // IPV6_RECVPKTINFO
	{levelIPv6, 67}, // IPV6_TCLASS
}

// sharedRules come before the others about the same calls.
func sharedRules() []rule {
	rules := []rule{
		{
			call: "listen", do: actionNotify,
			why: "anybody could connect to a socket of the internet; the kernel gives it a port without bind",
		},
		{
			call: "setsockopt", when: []condition{argIs(1, levelSocket), argIs(2, bindToDevice)}, do: refuseEPERM,
			why: "what the supervisor connects to the loopback address would leave by another interface",
		},
		{
			call: "setsockopt", when: []condition{argIs(1, levelSocket), argIs(2, bindToIndex)}, do: refuseEPERM,
			why: "see SO_BINDTODEVICE",
		},
	}
	for _, o := range harmlessOptions {
		rules = append(rules, rule{
			call: "setsockopt", when: []condition{argIs(1, o.level), argIs(2, o.option)}, do: actionNotify,
			why: "the supervisor lets it continue, and answers for a socket that replaces one of UDP",
		})
	}
	for _, level := range []uint32{levelIP, levelIPv6} {
		rules = append(rules, rule{
			call: "setsockopt", when: []condition{argIs(1, level)}, do: refuseEPERM,
			why: "a source route sends packets by way of any host, whatever their destination is",
		})
	}
	rules = append(rules, fastOpenRules()...)
	// A session has no sockets of UDP, so the supervisor may let all of these
	// continue.
	const why = "the supervisor answers for a socket that replaces one of UDP"
	return append(rules,
		rule{call: "recvfrom", when: []condition{argHasAny(4, ^uint64(0))}, do: actionNotify, why: why},
		rule{call: "recvmsg", do: actionNotify, why: why + "; the filter cannot see whether an address is asked for"},
		rule{call: "getsockname", do: actionNotify, why: why},
		rule{call: "getpeername", do: actionNotify, why: why},
	)
}

// sharedSocketRules take the place of offlineRules. All other sockets are
// refused: MPTCP, SCTP and SMC connect in other ways, and the rest sends without
// connect.
func sharedSocketRules(observed bool) []rule {
	rules := []rule{{
		call: "socket", when: []condition{argIs(0, familyNetlink), argIs(2, netlinkRoute)}, do: actionAllow,
		why: "libraries read the machine's addresses from it; it reaches nobody but the kernel",
	}}
	for _, family := range []uint32{familyInet, familyInet6} {
		rules = append(rules, rule{
			call: "socket", when: []condition{argIs(0, family), typeIs(socketStream), argIs(2, protocolMPTCP)},
			do: refuseEPROTONOSUPPORT, why: "programs then use TCP",
		})
		for _, protocol := range []uint32{0, protocolTCP} {
			rules = append(rules, rule{
				call: "socket", when: []condition{argIs(0, family), typeIs(socketStream), argIs(2, protocol)},
				do: actionAllow, why: "the supervisor connects it; Landlock lets nobody else do so",
			})
		}
		for _, protocol := range []uint32{0, protocolUDP} {
			rules = append(rules, rule{
				call: "socket", when: []condition{argIs(0, family), typeIs(socketDatagram), argIs(2, protocol)},
				do: actionNotify, why: "the supervisor returns a Unix socket, which leads to its resolver",
			})
		}
	}
	if observed {
		return append(rules, observedOfflineRules...)
	}
	return append(rules, offlineRules...)
}
