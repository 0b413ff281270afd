package darwin

import (
	"fmt"
	"slices"
)

// The sections of a profile that are the same for every policy.

// closedByDefault denies everything else; each denial is logged with the
// session's tag.
func closedByDefault(w *writer, s *Scene) {
	w.line("(deny default%s)", s.tagged())
}

// tagged is what marks the denials of a rule in the log, after its filter; empty
// without a tag. Each rule that denies what another one allows needs it.
func (s *Scene) tagged() string {
	if s.Tag == "" {
		return ""
	}
	return fmt.Sprintf(` (with message "%s")`, s.Tag)
}

func openByDefault(w *writer, _ *Scene) { w.line("(allow default)") }

// openUnlessDenied denies what (deny default) leaves open. By process-info a
// session would read arguments and environments of the user's processes, even
// if their sysctl is denied. A hard link or a clone in the project would show a
// file that may not be read.
func openUnlessDenied(w *writer, _ *Scene) {
	for _, operation := range openByVersion {
		w.line("(deny %s)", operation)
	}
}

// ownProcesses lets a session fork, and signal and inspect its own processes.
// "self" is explicit because same-sandbox has been seen not to include it.
// (target children) would not cover grandchildren and siblings, which worker
// pools and supervisors need.
func ownProcesses(w *writer, _ *Scene) {
	w.line("(allow process-fork)")
	w.line("(allow process-info* signal (target self))")
	w.line("(allow process-info* signal (target same-sandbox))")
}

// startQuestions lets runtimes read sizes, versions and processors.
// kern.procargs and kern.procargs2 are denied: they show arguments and
// environments of other processes. The kernel makes the name of a call by
// numbers too, and appends the process id. The JVM asks whether a processor's
// programs run here by a call that has an argument, so it is a write. Every
// program of recent systems makes the two policy calls (guarded files; whether
// it runs in a container).
func startQuestions(w *writer, _ *Scene) {
	w.line("(allow sysctl-read)")
	w.line(`(deny sysctl-read (sysctl-name-prefix "kern.procargs"))`)
	w.line(`(allow sysctl-write (sysctl-name "kern.grade_cputype"))`)
	w.line(`(allow system-mac-syscall (mac-policy-name "vnguard"))`)
	w.line(`(allow system-mac-syscall (require-all (mac-policy-name "Sandbox") (mac-syscall-number 67)))`)
	w.line("(allow system-fsctl (fsctl-command FSIOC_CAS_BSDFLAGS))")
}

func services(w *writer, s *Scene) {
	list := slices.Clone(baseServices)
	if s.Network {
		list = append(list, networkServices...)
	}
	if s.Everything {
		list = append(list, nameServices...)
	}
	for _, service := range list {
		w.line(`(allow mach-lookup (global-name "%s"))`, service.name)
	}
}

// kernelObjects opens semaphores for Python's multiprocessing, the pages that
// notify(3) and CFPreferences share, and power states for the JVM and Electron.
// Shared memory is open by the names that OpenMP, PyTorch and Python's
// multiprocessing give it, because it is common to all programs of the user.
// The preferences are those of all programs together, such as the language.
func kernelObjects(w *writer, _ *Scene) {
	w.line("(allow ipc-posix-sem)")
	w.line(`(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))`)
	w.line(`(allow ipc-posix-shm-read* (ipc-posix-name-prefix "apple.cfprefs."))`)
	for _, name := range []string{"__KMP_REGISTERED_LIB_[0-9]+", "torch_[0-9]+_[0-9]+_[0-9]+", "psm_[0-9a-f]+"} {
		w.line(`(allow ipc-posix-shm-read* ipc-posix-shm-write-create ipc-posix-shm-write-data `+
			`ipc-posix-shm-write-unlink (ipc-posix-name-regex #"^/%s$"))`, name)
	}
	w.line(`(allow user-preference-read (preference-domain "kCFPreferencesAnyApplication"))`)
	w.line(`(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))`)
	w.line("(allow system-socket (socket-domain AF_UNIX))")
}

// terminals: without ioctls an interactive shell cannot become the foreground
// job and gets no input. Terminals that the session opens carry an extension.
// Its own terminal, opened before, does not, so it is named. The user's other
// terminals stay closed.
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

// typing follows every grant of ioctls: no process may type into a terminal for
// another (TIOCSTI).
func typing(w *writer, _ *Scene) { w.line("(deny file-ioctl " + typingFilter + ")") }

// typingFilter is TIOCSTI, 0x80017472 (sys/ttycom.h). It is decimal: the name is
// unknown to macOS 13 and 14, and a hexadecimal number has aborted the compiler
// (openai/codex issue 45119, nvx).
const typingFilter = "(ioctl-command 2147578994)"

// devices opens what every process needs and none can do harm with. dyld aborts
// without dtracehelper.
func devices(w *writer, _ *Scene) {
	w.line(`(allow file-read* file-test-existence file-write-data file-ioctl (literal "/dev/null") ` +
		`(literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/dtracehelper"))`)
	w.line(`(allow file-read* file-test-existence (literal "/dev") (literal "/dev/autofs_nowait"))`)
	w.line(`(allow file-read* file-test-existence file-write-data (subpath "/dev/fd") (literal "/dev/stdin") ` +
		`(literal "/dev/stdout") (literal "/dev/stderr"))`)
}

// walking: chdir(2), realpath(3) and lstat(2) need the metadata of each
// directory on the way, and following a symlink needs its metadata; /tmp, /var
// and /etc are symlinks. Contents stay closed.
func walking(w *writer, s *Scene) {
	w.line("(allow file-read-metadata file-test-existence (vnode-type SYMLINK))")
	w.line(`(allow file-read-metadata file-test-existence (literal "/tmp") (literal "/var") (literal "/etc") ` +
		`(literal "/System/Volumes") (literal "/System/Volumes/Data") (literal "/System/Volumes/Data/Users") ` +
		`(literal "/private") (literal "/private/var") ` +
		`(literal "/private/var/db") (literal "/private/tmp") (literal "/private/etc"))`)
	for _, dir := range s.ancestors() {
		w.line("(allow file-read-metadata file-test-existence (literal %s))", w.parameter("ANCESTOR", dir))
	}
}

// startFiles: if "/" cannot be read, every program aborts in dyld without a
// message. The rest are libraries, frameworks, the choice of shell and Xcode
// tools, and the time zone. They are the system's own and the same on every
// Mac. Running programs needs a grant. Rosetta maps its translations of
// programs, and no program reads them.
func startFiles(w *writer, _ *Scene) {
	w.line(`(allow file-read* file-test-existence (literal "/"))`)
	w.line(`(allow file-read* file-test-existence (subpath "/usr/lib") (subpath "/System/Library") ` +
		`(subpath "/System/Cryptexes") (subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/iOSSupport") ` +
		`(subpath "/Library/Apple") (subpath "/usr/share/zoneinfo") (subpath "/usr/share/zoneinfo.default") ` +
		`(subpath "/usr/share/icu") (subpath "/private/var/db/timezone") (subpath "/private/var/select") ` +
		`(literal "/private/var/db/xcode_select_link") (literal "/private/etc/localtime"))`)
	w.line(
		`(allow file-map-executable (subpath "/usr/lib") (subpath "/System/Library") (subpath "/System/Cryptexes") ` +
			`(subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/iOSSupport") (subpath "/Library/Apple") ` +
			`(subpath "/private/var/db/oah"))`)
}
