package darwin

// The sections of a profile that are the same for every policy.

// closedByDefault: every refusal stands in the system's log with the session's
// tag.
func closedByDefault(w *writer, s *Scene) {
	if s.Tag == "" {
		w.line("(deny default)")
		return
	}
	w.line(`(deny default (with message "%s"))`, s.Tag)
}

func openByDefault(w *writer, _ *Scene) { w.line("(allow default)") }

// ownProcesses: a session may fork, and signal and look at its own. "self" is
// written out because same-sandbox has been seen not to include it. The seeds'
// (target children) would leave worker pools and supervisors without power over
// grandchildren and siblings.
func ownProcesses(w *writer, _ *Scene) {
	w.line("(allow process-fork)")
	w.line("(allow process-info* signal (target self))")
	w.line("(allow process-info* signal (target same-sandbox))")
}

// startQuestions: runtimes ask for sizes, versions and processors.
// kern.procargs2 would show arguments and environments of other processes. The
// two calls into policies are made by every program of recent systems (guarded
// files; whether it runs in a container).
func startQuestions(w *writer, _ *Scene) {
	w.line("(allow sysctl-read)")
	w.line(`(deny sysctl-read (sysctl-name "kern.procargs2") (sysctl-name-prefix "kern.procargs2."))`)
	w.line(`(allow system-mac-syscall (mac-policy-name "vnguard"))`)
	w.line(`(allow system-mac-syscall (require-all (mac-policy-name "Sandbox") (mac-syscall-number 67)))`)
	w.line("(allow system-fsctl (fsctl-command FSIOC_CAS_BSDFLAGS))")
}

func services(w *writer, s *Scene) {
	list := baseServices
	if s.Network {
		list = append(list[:len(list):len(list)], networkServices...)
	}
	for _, service := range list {
		w.line(`(allow mach-lookup (global-name "%s"))`, service.name)
	}
}

// kernelObjects: semaphores for Python's multiprocessing, the pages that
// notify(3) and CFPreferences share, power for the JVM and Electron.
func kernelObjects(w *writer, _ *Scene) {
	w.line("(allow ipc-posix-sem)")
	w.line(`(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))`)
	w.line(`(allow ipc-posix-shm-read* (ipc-posix-name-prefix "apple.cfprefs."))`)
	w.line(`(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))`)
	w.line("(allow system-socket (socket-domain AF_UNIX))")
}

// terminals: without ioctls an interactive shell cannot become the foreground
// job, and stays without input. Terminals that the session opens itself carry
// an extension; its own, opened before, does not, and is named. Other terminals
// of the user stay closed.
func terminals(w *writer, s *Scene) {
	w.line("(allow pseudo-tty)")
	w.line(`(allow file-read* file-test-existence file-write* file-ioctl (literal "/dev/tty") (literal "/dev/ptmx"))`)
	w.line(`(allow file-read* file-test-existence file-write* file-ioctl ` +
		`(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))`)
	if s.Terminal != "" {
		w.line("(allow file-read* file-test-existence file-write* file-ioctl (literal %s))",
			w.parameter("TERMINAL", s.Terminal))
	}
}

// typing comes after every grant of ioctls: nobody types into a terminal on
// another's behalf (TIOCSTI).
func typing(w *writer, _ *Scene) { w.line("(deny file-ioctl (ioctl-command #x80017472))") }

// devices: what any process needs and none can harm with. dyld dies where it
// cannot reach dtracehelper.
func devices(w *writer, _ *Scene) {
	w.line(`(allow file-read* file-test-existence file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") ` +
		`(literal "/dev/random") (literal "/dev/urandom") (literal "/dev/dtracehelper"))`)
	w.line(`(allow file-read* file-test-existence (literal "/dev") (literal "/dev/autofs_nowait"))`)
	w.line(`(allow file-read* file-test-existence file-write-data (subpath "/dev/fd") (literal "/dev/stdin") (literal "/dev/stdout") ` +
		`(literal "/dev/stderr"))`)
}

// walking: chdir(2), realpath(3) and lstat(2) need the metadata of each
// directory on the way, and a symlink's of whoever follows it; /tmp, /var and
// /etc are symlinks. Contents stay closed.
func walking(w *writer, s *Scene) {
	w.line("(allow file-read-metadata file-test-existence (vnode-type SYMLINK))")
	w.line(`(allow file-read-metadata file-test-existence (literal "/tmp") (literal "/var") (literal "/etc") (literal "/System/Volumes") ` +
		`(literal "/System/Volumes/Data") (literal "/System/Volumes/Data/Users") (literal "/private") (literal "/private/var") ` +
		`(literal "/private/var/db") (literal "/private/tmp") (literal "/private/etc"))`)
	for _, dir := range s.ancestors() {
		w.line("(allow file-read-metadata file-test-existence (literal %s))", w.parameter("ANCESTOR", dir))
	}
}

// startFiles: without reading "/" itself every program dies in dyld with no
// word. The rest are libraries, frameworks, which shell and which tools of
// Xcode are chosen, the time zone. They are the system's, the same on every
// Mac; running programs takes a grant.
func startFiles(w *writer, _ *Scene) {
	w.line(`(allow file-read* file-test-existence (literal "/"))`)
	w.line(`(allow file-read* file-test-existence (subpath "/usr/lib") (subpath "/System/Library") (subpath "/System/Cryptexes") ` +
		`(subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/iOSSupport") (subpath "/Library/Apple") ` +
		`(subpath "/usr/share/zoneinfo") (subpath "/usr/share/zoneinfo.default") (subpath "/usr/share/icu") ` +
		`(subpath "/private/var/db/timezone") (subpath "/private/var/select") (literal "/private/var/db/xcode_select_link") ` +
		`(literal "/private/etc/localtime"))`)
	w.line(`(allow file-map-executable (subpath "/usr/lib") (subpath "/System/Library") (subpath "/System/Cryptexes") ` +
		`(subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/iOSSupport") (subpath "/Library/Apple"))`)
}
