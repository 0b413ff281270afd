// Package messages collects every text that a user can see from the source of
// the sidecar and of the editors' plugins, and holds it to the rules for
// messages.
package messages
