// Package hosts tests which hosts a session can reach if its settings allow
// some: with real clients, with hostile ones, and in every way in which a
// connection can fail. The sidecar runs in a network namespace with servers and
// a DNS server of the tests' own, so that nothing leaves the machine.
package hosts
