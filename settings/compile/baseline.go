package compile

import (
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// baselinePath is one built-in grant.
type baselinePath struct {
	path   string
	access policy.Access
	// private: instead of the path, the session gets a runtime directory of its
	// own.
	private bool
}

const (
	readExecute = policy.Read | policy.Execute
	device      = policy.Read | policy.Write | policy.Device
)

// baselines holds for each platform what a null category of system_paths means.
var baselines = sync.OnceValue(func() map[string]map[string][]baselinePath {
	return map[string]map[string][]baselinePath{
		"linux": {
			"system_paths.executable": grantsFor(readExecute,
				"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/lib", "/lib64", "/bin", "/sbin",
				// Software that the administrator installed: by hand, NixOS, snap.
				"/usr/local", "/opt", "/nix/store", "/run/current-system/sw", "/snap",
				// Debian's mvn, gradle, ant, psql and pg_dump start programs there.
				"/usr/share"),
			"system_paths.read_only": append(
				grantsFor(policy.Read, "/etc", "/usr/etc", "/usr/share", "/usr/include", "/usr/lib/locale", "/proc"),
				grantsFor(policy.Read, elsewhere...)...),
			"system_paths.read_write": append(append(
				grantsFor(policy.ReadWrite, "/tmp", "/var/tmp", "/dev/shm"),
				// Not /dev: it holds the disks and, in /dev/pts, the user's other
				// terminals. Any process needs the devices in this list, and none
				// can do harm with them. /dev/ptmx gives the session terminals of
				// its own.
				grantsFor(device, "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
					"/dev/ptmx")...),
				// Not /run/user itself: the session bus and systemd's user manager
				// start processes outside of any sandbox.
				baselinePath{path: "/run/user", private: true}),
		},
		"darwin": macBaseline(),
	}
})

// elsewhere is what files in /etc, /usr and libc lead to outside of those, on
// various distributions of Linux. Everybody on the machine may read it.
var elsewhere = []string{
	// A symlink on most machines with a desktop. It leads to /run/systemd/resolve,
	// /run/NetworkManager, /run/resolvconf or /mnt/wsl. systemd-resolved and
	// resolvconf replace their files when the network changes; a grant of the
	// directory holds for the new ones, too.
	"/etc/resolv.conf", "/run/systemd/resolve", "/run/resolvconf",
	// Symlinks on machines whose /etc cannot be written.
	"/etc/hosts", "/etc/hostname", "/etc/localtime", "/etc/machine-id",
	// Users of LDAP and others (nsswitch.conf(5)).
	"/var/lib/extrausers", "/var/lib/sss/mc",
	// What /etc and /usr/share link to: certificates, dictionaries, fonts, manual
	// pages, typesetting.
	"/var/lib/ca-certificates", "/var/lib/aspell", "/var/lib/dictionaries-common", "/var/lib/ispell", "/var/lib/texmf",
	"/var/lib/ghostscript", "/var/lib/sgml-base", "/var/lib/xml-core", "/var/cache/dictionaries-common",
	"/var/cache/fontconfig", "/var/cache/man",
	// What is installed.
	"/var/lib/dpkg", "/var/lib/apt/lists", "/var/lib/rpm", "/var/lib/pacman",
	// Processors, memory, and the limits of containers: lscpu, OpenMP, Java, Node.
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// homeDotfiles are what shells and git read at start-up, relative to the home
// directory. Read-only, on every platform.
var homeDotfiles = []string{
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".bashrc", ".bash_profile", ".bash_login", ".profile",
	".bash_logout", ".bash_aliases", ".inputrc", ".dircolors", ".oh-my-zsh", ".zcompdump", ".zcompdump.zwc",
	".vimrc", ".vim", ".exrc", ".lesskey", ".psqlrc", ".sqliterc",
	".terminfo", ".gitconfig", ".config",
	".config/gh/config.yml", // the directory is hidden, for the token in it
}

func grantsFor(access policy.Access, paths ...string) []baselinePath {
	list := make([]baselinePath, len(paths))
	for i, path := range paths {
		list[i] = baselinePath{path: path, access: access}
	}
	return list
}
