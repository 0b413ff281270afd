package seccomp

// From linux/tcp.h.
const (
	levelTCP        = 6
	fastOpenConnect = 30 // TCP_FASTOPEN_CONNECT
)

// localhostRules are for a session with the network whose supervisor decides
// which services of this machine it reaches; see docs/design/localhost.md. What
// connects without connect(2), or later than it, is closed.
func localhostRules() []rule {
	rules := []rule{
		{call: "listen", do: actionNotify, why: "the supervisor must know with which sockets the session listens"},
		{
			call: "setsockopt", when: []condition{argIs(1, levelTCP), argIs(2, fastOpenConnect)}, do: refuseEOPNOTSUPP,
			why: "connects when the program writes first, and somebody else may listen then",
		},
	}
	rules = append(rules, fastOpenRules()...)
	for _, family := range []uint32{familyInet, familyInet6} {
		for _, protocol := range []uint32{0, protocolTCP} {
			rules = append(rules, rule{
				call: "socket", when: []condition{argIs(0, family), typeIs(socketStream), argIs(2, protocol)},
				do: actionAllow, why: "the supervisor connects it",
			})
		}
		rules = append(rules,
			rule{
				call: "socket", when: []condition{argIs(0, family), typeIs(socketStream)}, do: refuseEPROTONOSUPPORT,
				why: "MPTCP listens with a socket that the supervisor does not know, and programs then use TCP; SCTP " +
					"connects without connect",
			},
			rule{
				call: "socket", when: []condition{argIs(0, family), typeIs(socketSeqpacket)}, do: refuseEPROTONOSUPPORT,
				why: "SCTP connects with each message",
			},
		)
	}
	return rules
}

// fastOpenRules refuse to connect by sending.
func fastOpenRules() []rule {
	var rules []rule
	for _, send := range []struct {
		call  string
		flags int
	}{{"sendto", 3}, {"sendmsg", 2}, {"sendmmsg", 3}} {
		rules = append(rules, rule{
			call: send.call, when: []condition{argHasAny(send.flags, sendFastOpen)}, do: refuseEOPNOTSUPP,
			why: "connects; programs connect themselves then",
		})
	}
	return rules
}
