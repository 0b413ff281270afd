// Package journal keeps a list of what must not outlive this process. The
// watchdog and the user's next sidecar read it.
//
// [New] makes a sidecar's journal. Each thing is written down before it exists
// ([Journal.Write]). [Sweep] ends what the journals of dead sidecars list. The
// [Ender] of a kind knows what a [Record] of that kind means; this package
// knows no mechanism.
//
// See docs/design/journal.md.
package journal
