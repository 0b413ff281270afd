// Package journal keeps a list of what must not outlive this process, for those
// who come after it: the watchdog and the user's next sidecar.
//
// [New] makes a sidecar's journal. Each thing is written down before it comes to
// be ([Journal.Write]). [Sweep] carries out the journals that dead sidecars have
// left. What a [Record] means is up to the [Ender] of its kind; this package
// knows no mechanism.
//
// See docs/design/journal.md.
package journal
