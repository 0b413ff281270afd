// Package risks is the table of what matters outside of a project: files that
// programs outside the sandbox act on, and files whose reader has power
// elsewhere. What is suggested, hidden and warned of reads it. The names within
// a project are in platform/protected.
//
// [All] is the table itself. [In] is the table in a home directory, with the
// places that variables move.
//
// See docs/design/advice.md.
package risks

import "sync"

// Class says in which way a place matters.
type Class uint8

const (
	// Secret: its reader has power elsewhere.
	Secret Class = 1 << iota
	// Acting: somebody outside acts on what is written there.
	Acting
)

// Class is Secret, Acting, or both.
func (p Place) Class() (class Class) {
	if p.Secret != "" {
		class |= Secret
	}
	if p.Acts != "" {
		class |= Acting
	}
	return class
}

// Hidden reports whether sessions do not see it where a wider directory is
// granted. No place is suggested for what its class says.
func (p Place) Hidden() bool { return p.Secret != "" && !p.Shown }

// Place is a file or a directory with everything below it.
type Place struct {
	// Path is absolute, or begins with "~/" and is relative to the home
	// directory. It has no symlinks of its own: who compares it resolves it. In
	// its last name * stands for any characters.
	Path string
	// Secret names what its reader gets, such as "SSH keys"; "" for a place that
	// holds none.
	Secret string
	// Plain are names of files in it, at any depth, that hold no secret and are
	// often needed. * stands for any characters.
	Plain []string
	// Shown: sessions see the secret where a wider directory is granted, because
	// everyday programs need the file.
	Shown bool
	// Mixed is what a program does without a file of settings that may hold a
	// secret, such as "npm asks the public registry". Sessions see it in a wider
	// grant if it holds none. If it does, they see the rest of it. In the home
	// directory that is so without a grant, too. A name that ends in ".d" is a
	// directory of such files.
	Mixed string
	// Format says how a mixed file is written.
	Format Format
	// Harmless: what is private to the user there is seen in a wider grant, where
	// other private files are hidden.
	Harmless bool
	// Acts is a clause that says who acts on what is written there, such as
	// "shells run it when they start"; "" if nobody does.
	Acts string
	// Store: programs fill it by themselves, as they do a cache. People put no links
	// to files of theirs there.
	Store bool
	// Set is the entry of "toolchains" that gives sessions what they need of the
	// place without a risk; "" if there is none.
	Set string
	// Agent is the agent whose state it is; "" if it is none. An agent keeps its
	// sign-in there.
	Agent string
	// Variable is the variable that names the place here; "" if it is at its usual
	// path.
	Variable string
}

// Format is how a file is written that has settings beside secrets.
type Format string

const (
	// FormatLines: a setting a line, as npm, yarn and pip have them.
	FormatLines Format = ""
	// FormatCurl: an option a line (curl(1), --config).
	FormatCurl Format = "curl"
	// FormatWget: a command a line (the manual of wget, "Wgetrc Syntax").
	FormatWget Format = "wget"
	// FormatMercurial: sections of settings (hgrc(5)).
	FormatMercurial Format = "Mercurial"
	// FormatMaven: XML (maven.apache.org/settings.html).
	FormatMaven Format = "Maven"
	// FormatSigns: any text. What looks like a secret in it is looked for line by
	// line.
	FormatSigns Format = "signs"
)

// The clauses that several places share.
const (
	byShells   = "your shells run it when they start"
	byLogin    = "your desktop or login runs it"
	byPath     = "your shells find programs there"
	byEditor   = "your editor runs what it names"
	byTerminal = "your terminal starts what it names"
	byDebugger = "your debugger runs its commands"
	byGit      = "git outside runs the programs that it names"
	byMachine  = "programs of the whole machine act on it"
)

// All is the table. Secrets come first, in the order in which a grant of several
// is described. It is made when it is first asked for: most processes of a session
// never do, and all of them would pay for it when they start. It is not to be
// changed.
var All = sync.OnceValue(func() []Place {
	return withStores(withHarmless(concat(
		secrets(), shells(), sessions(), desktop(), programs(), tools(), editors(), agents(), machine(),
	)))
})

func concat(lists ...[]Place) (all []Place) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// acted makes places that the same programs act on.
func acted(acts string, paths ...string) (list []Place) {
	for _, path := range paths {
		list = append(list, Place{Path: path, Acts: acts})
	}
	return list
}

// holds makes places of the same secret.
func holds(secret string, paths ...string) (list []Place) {
	for _, path := range paths {
		list = append(list, Place{Path: path, Secret: secret})
	}
	return list
}

// shown makes places of a secret that sessions see in a wider grant.
func shown(secret string, paths ...string) []Place {
	list := holds(secret, paths...)
	for i := range list {
		list[i].Shown = true
	}
	return list
}

// mixed makes places of settings that may hold passwords of package registries.
func mixed(acts, without string, paths ...string) (list []Place) {
	return mixedWith(passwords, acts, without, paths...)
}

// mixedWith makes places of settings that may hold a secret.
func mixedWith(secret, acts, without string, paths ...string) (list []Place) {
	for _, path := range paths {
		list = append(list, Place{Path: path, Secret: secret, Acts: acts, Mixed: without})
	}
	return list
}

// written says how mixed places are written.
func written(format Format, list []Place) []Place {
	for i := range list {
		list[i].Format = format
	}
	return list
}

// inSet says which set of "toolchains" gives sessions what they need of places.
func inSet(set string, list []Place) []Place {
	for i := range list {
		list[i].Set = set
	}
	return list
}
