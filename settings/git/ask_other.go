//go:build !unix

package git

import "github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"

// Asker asks the installed git about its configuration.
type Asker struct{}

// Ask returns nothing on this system.
func (a *Asker) Ask(resolve.Host, string) Answer { return nil }

// Refuses says that nobody can ask git on this system.
func (a *Asker) Refuses(resolve.Host, string, Parent, Answer) string {
	return "git cannot be asked here"
}
