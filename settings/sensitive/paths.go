// Package sensitive knows what in a home directory gives power elsewhere: keys,
// tokens and passwords.
//
// [Find] looks for the known places, [Paths.Holds] says what a grant would open,
// and [Assignments] finds secrets in the start-up files of shells.
package sensitive

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// known is a path in the home directory that gives its reader power elsewhere.
type known struct{ path, holds string }

// SSHKeys is what ~/.ssh holds. An agent can use them for a session.
const SSHKeys = "SSH keys"

// knownPlaces are relative to the home directory. Those of the other platform
// never exist.
var knownPlaces = []known{
	{".ssh", SSHKeys},
	{".gnupg", "GnuPG keys"},
	{".aws", "keys of Amazon's cloud"},
	{".azure", "tokens of Microsoft's cloud"},
	{".config/gcloud", "tokens of Google's cloud"},
	{".config/doctl", "tokens of DigitalOcean"},
	{".kube", "credentials of Kubernetes clusters"},
	{".docker", "passwords of container registries"},
	{".config/gh", "tokens of GitHub"},
	{".config/glab-cli", "tokens of GitLab"},
	{".config/hub", "tokens of GitHub"},
	{".git-credentials", "passwords of git servers"},
	{".config/git/credentials", "passwords of git servers"},
	{".netrc", "passwords of servers"},
	{".npmrc", "tokens of package registries"},
	{".pypirc", "tokens of package registries"},
	{".cargo/credentials.toml", "tokens of package registries"},
	{".gem/credentials", "tokens of package registries"},
	{".m2/settings.xml", "passwords of package registries"},
	{".gradle/gradle.properties", "passwords of package registries"},
	{".composer/auth.json", "tokens of package registries"},
	{".config/composer/auth.json", "tokens of package registries"},
	{".nuget/NuGet/NuGet.Config", "passwords of package registries"},
	{".terraform.d/credentials.tfrc.json", "tokens of Terraform"},
	{".vault-token", "a token of Vault"},
	{".config/rclone", "passwords of cloud storage"},
	{".config/op", "sessions of a password manager"},
	{".password-store", "passwords"},
	{".local/share/keyrings", "the desktop's key ring"},
	{".local/share/kwalletd", "the desktop's key ring"},
	{".mozilla", "a browser's cookies and passwords"},
	{".config/google-chrome", "a browser's cookies and passwords"},
	{".config/chromium", "a browser's cookies and passwords"},
	{"Library/Keychains", "the key chain"},
	{"Library/Application Support/Google/Chrome", "a browser's cookies and passwords"},
	{"Library/Application Support/Firefox", "a browser's cookies and passwords"},
}

// harmlessNames are files in such places that hold no secret and are often
// needed.
var harmlessNames = []string{
	"known_hosts", "known_hosts2", "allowed_signers", "config", "config.json", "gpg.conf", "gpg-agent.conf",
	"pubring.kbx", "trustdb.gpg",
}

// Paths are the sensitive places of a home directory: real paths, with what
// each holds and whether it exists.
type Paths struct {
	home string // real; "" if it is not known
	All  []place
}

type place struct {
	Path, Holds string
	Exists      bool
}

// Find resolves the known places of keys and tokens in a home directory.
func Find(r *resolve.View, home string) *Paths {
	if home == "" {
		return &Paths{}
	}
	found := &Paths{home: r.Resolve(home).Path}
	for _, known := range knownPlaces {
		target := r.Resolve(filepath.Join(found.home, known.path))
		found.All = append(found.All, place{Path: target.Path, Holds: known.holds, Exists: target.Exists})
	}
	return found
}

// Holds says what a grant of path opens to sessions at most; "" if nothing known
// matters. Places below path count only if they exist. A grant of ~/.ssh is one
// of keys even before there are any.
func (p *Paths) Holds(path string) string {
	return p.holds(path, func(place) bool { return true })
}

// Opens is Holds in two parts: what a grant of path opens for certain, and the
// places below it that it opens only where nothing can be hidden.
func (p *Paths) Opens(path string, hidden func(path string) bool) (shown, covered string) {
	shown = p.holds(path, func(known place) bool { return !hidden(known.Path) })
	return shown, p.below(path, "", func(known place) bool { return hidden(known.Path) })
}

// holds is Holds with only those places below path that count.
func (p *Paths) holds(path string, counts func(place) bool) string {
	switch {
	case p.home == "":
		return ""
	case path == p.home:
		return "your home directory" + p.below(path, ", with ", counts)
	case policy.Contains(path, p.home):
		return "your home directory and much more" + p.below(path, ", with ", counts)
	}
	for _, known := range p.All {
		public := known.Holds == SSHKeys && strings.HasSuffix(path, ".pub")
		if policy.Contains(known.Path, path) && !public && !slices.Contains(harmlessNames, filepath.Base(path)) {
			return known.Holds
		}
	}
	return p.below(path, "", counts)
}

// below lists the existing places below path that count, after a prefix; "" if
// there are none.
func (p *Paths) below(path, prefix string, counts func(place) bool) string {
	var holds []string
	for _, known := range p.All {
		if known.Exists && policy.Contains(path, known.Path) && counts(known) && !slices.Contains(holds, known.Holds) {
			holds = append(holds, known.Holds)
		}
	}
	const most = 3
	if len(holds) > most {
		holds = append(holds[:most], "more")
	}
	last := len(holds) - 1
	switch last {
	case -1:
		return ""
	case 0:
		return prefix + holds[0]
	}
	return prefix + strings.Join(holds[:last], ", ") + " and " + holds[last]
}
