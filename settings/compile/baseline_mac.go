package compile

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// macBaseline is what a null category of system_paths means on macOS. The paths
// are real ones: a rule of Seatbelt on /etc matches nothing. docs/design/
// seatbelt.md has the public report behind each.
func macBaseline() map[string][]baselinePath {
	return map[string][]baselinePath{
		"system_paths.executable": grantsFor(readExecute, slices.Concat(
			[]string{
				"/bin", "/usr/bin", "/usr/sbin", "/sbin", "/usr/lib", "/usr/libexec", "/System/Library/dyld",
				"/System/Cryptexes", "/Library/Apple/usr/bin",
				// Programs of /usr/bin such as git, cc and python3 only start those
				// of the chosen developer directory. xcode-select makes the two
				// symlinks; each grants its target, see withFrameworks.
				"/Library/Developer/CommandLineTools", "/Applications/Xcode.app",
				"/private/var/select/developer_dir", "/private/var/db/xcode_select_link",
				"/usr/local/go", "/Library/Frameworks/Python.framework", "/nix/store", "/run/current-system/sw",
			},
			below("/opt/homebrew", append([]string{"Library"}, homebrew...)...),
			below("/usr/local", append([]string{"Homebrew", "libexec"}, homebrew...)...),
			below("/opt/local", "bin", "sbin", "lib", "libexec", "Library"), // MacPorts
		)...),
		"system_paths.read_only": grantsFor(policy.Read, slices.Concat(
			[]string{
				"/private/etc", "/usr/share", "/System/Library/Keychains",
				"/Library/Preferences/SystemConfiguration",
				"/private/etc/resolv.conf", // its target, in /private/var/run
				// The languages of the machine, and whether Xcode's license is
				// accepted, without which its git and cc end.
				"/Library/Preferences/.GlobalPreferences.plist", "/Library/Preferences/com.apple.dt.Xcode.plist",
			},
			below("/opt/homebrew", "share", "etc", "include"),
			below("/usr/local", "share", "etc", "include"),
			below("/opt/local", "share", "etc", "include"),
		)...),
		"system_paths.read_write": append(
			// Not /private/var/folders: the user's other programs keep their caches
			// and temporary files there, and programs outside run what some of these
			// name. A session's own TMPDIR comes with the session.
			grantsFor(policy.ReadWrite, "/private/tmp", "/private/var/tmp", "/private/var/run/mDNSResponder"),
			// Not /dev: it holds the user's other terminals and the disks. The
			// session's own terminal is granted with the session.
			grantsFor(device, "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
				"/dev/dtracehelper", "/dev/fd")...),
	}
}

// withFrameworks is a developer directory with what its programs load: those of
// an Xcode have their frameworks beside it.
func withFrameworks(path string) string {
	if contents, ok := strings.CutSuffix(path, "/Developer"); ok && strings.HasSuffix(contents, ".app/Contents") {
		return contents
	}
	return path
}

// homebrew are the directories of Homebrew that hold programs, below its prefix.
// Not var: databases keep their data there.
var homebrew = []string{"bin", "sbin", "lib", "opt", "Cellar", "Caskroom", "Frameworks"}

// below joins names to a directory.
func below(dir string, names ...string) []string {
	var list []string
	for _, name := range names {
		list = append(list, dir+"/"+name)
	}
	return list
}
