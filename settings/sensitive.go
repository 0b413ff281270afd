package settings

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// sensitivePlace is something in the home directory that gives whoever reads it power elsewhere.
type sensitivePlace struct{ path, holds string }

// sensitivePlaces are relative to the home directory. Those of the other platform are simply never there.
var sensitivePlaces = []sensitivePlace{
	{".ssh", "SSH keys"},
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

// sensitivity says what a grant of path lets sessions get at; "" where it is nothing that is known to matter. Whether something exists
// counts only for what lies below path: a grant of ~/.ssh is one of keys also before there are any.
func (e *evaluation) sensitivity(path string) string {
	if e.host.home == "" {
		return ""
	}
	home := e.resolver.resolve(e.host.home).path
	switch {
	case path == home:
		return "your home directory" + e.below(home, path, ", with ")
	case policy.Contains(path, home):
		return "your home directory and much more" + e.below(home, path, ", with ")
	}
	for _, place := range sensitivePlaces {
		if policy.Contains(e.real(home, place), path) {
			return place.holds
		}
	}
	return e.below(home, path, "")
}

// below lists what is there of the sensitive places below path, after a prefix; "" where nothing is.
func (e *evaluation) below(home, path, prefix string) string {
	var holds []string
	for _, place := range sensitivePlaces {
		real := e.real(home, place)
		if policy.Contains(path, real) && e.resolver.resolve(real).exists && !slices.Contains(holds, place.holds) {
			holds = append(holds, place.holds)
		}
	}
	const most = 3
	if len(holds) > most {
		holds = append(holds[:most], "more")
	}
	if len(holds) == 0 {
		return ""
	}
	last := len(holds) - 1
	if last == 0 {
		return prefix + holds[0]
	}
	return prefix + strings.Join(holds[:last], ", ") + " and " + holds[last]
}

func (e *evaluation) real(home string, place sensitivePlace) string {
	return e.resolver.resolve(filepath.Join(home, place.path)).path
}
