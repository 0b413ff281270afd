package darwin

// symbolKind is where in a profile a symbol may be.
type symbolKind string

const (
	isOperation symbolKind = "operation"
	isFilter    symbolKind = "filter"
	isModifier  symbolKind = "modifier"
	isCall      symbolKind = "call"
)

// knownSymbol is a name of the profile language that our profiles use, in the
// form in which they use it.
type knownSymbol struct {
	kind symbolKind
	// name is the operation, or the shallow shape of the filter.
	name string
	// since is the first macOS of which a public source shows that its compiler
	// takes the symbol; 0 if Apple's profiles of macOS 10.15 have it.
	since int
	// source is a public profile that uses the symbol in this form: owner,
	// repository and path.
	source string
}

// The public profiles. Apple's own are those of macOS 10.15.
const (
	apples = "knightsc/sandbox_profiles System/Library/Sandbox/Profiles/"

	appleApplication = apples + "application.sb"
	appleSystem      = apples + "system.sb"
	appleRules       = "knightsc/sandbox_profiles usr/share/sandbox/mds.sb"

	codex        = "openai/codex codex-rs/sandboxing/src/"
	codexBase    = codex + "seatbelt_base_policy.sbpl"
	codexFiles   = codex + "restricted_read_only_platform_defaults.sbpl"
	codexRuntime = codex + "restricted_platform_runtime_defaults.sbpl"
	codexSockets = codex + "seatbelt.rs"

	claude = "anthropic-experimental/sandbox-runtime src/sandbox/macos-sandbox-utils.ts"
	nvx    = "fstubner/nvx internal/nvx/sandbox_seatbelt.go"
	// diffs has Apple's profiles of later systems, decompiled. The path is the
	// profile's name there.
	diffs = "blacktop/ipsw-diffs app-extension-enhanced-security"
)

// fourteen is the oldest macOS on which the newer symbols were seen.
const fourteen = 14

// symbols are those that profiles may use. docs/design/seatbelt.md says how the
// table is used.
var symbols = []knownSymbol{
	{isOperation, "default", 0, appleApplication},
	{isOperation, "file-clone", fourteen, diffs},
	{isOperation, "file-ioctl", 0, appleApplication},
	{isOperation, "file-link", 0, appleApplication},
	{isOperation, "file-map-executable", 0, apples + "apsd.sb"},
	{isOperation, "file-read*", 0, appleApplication},
	{isOperation, "file-read-data", 0, appleApplication},
	{isOperation, "file-read-metadata", 0, appleApplication},
	{isOperation, "file-test-existence", fourteen, codexFiles},
	{isOperation, "file-write*", 0, appleApplication},
	{isOperation, "file-write-create", 0, appleApplication},
	{isOperation, "file-write-data", 0, appleApplication},
	{isOperation, "file-write-unlink", 0, apples + "colorsyncd.sb"},
	{isOperation, "iokit-open", 0, appleApplication},
	{isOperation, "ipc-posix-sem", 0, apples + "com.apple.neagent.sb"},
	{isOperation, "ipc-posix-shm-read*", 0, appleSystem},
	{isOperation, "ipc-posix-shm-write-create", 0, appleApplication},
	{isOperation, "ipc-posix-shm-write-data", 0, appleApplication},
	{isOperation, "ipc-posix-shm-write-unlink", 0, appleApplication},
	{isOperation, "mach-lookup", 0, appleApplication},
	{isOperation, "network-bind", 0, apples + "com.apple.identityservicesd.sb"},
	{isOperation, "network-inbound", 0, appleApplication},
	{isOperation, "network-outbound", 0, appleApplication},
	{isOperation, "nvram*", 0, appleApplication},
	{isOperation, "process-exec*", 0, apples + "com.apple.sysextd.sb"},
	{isOperation, "process-fork", 0, appleApplication},
	{isOperation, "process-info*", 0, apples + "com.apple.AppSSOAgent.sb"},
	{isOperation, "pseudo-tty", 0, appleApplication},
	{isOperation, "signal", 0, appleApplication},
	{isOperation, "sysctl-read", 0, apples + "com.apple.audio.carpd.sb"},
	{isOperation, "sysctl-write", 0, apples + "com.apple.audio.carpd.sb"},
	{isOperation, "system-fsctl", 0, apples + "com.apple.fileproviderd.sb"},
	{isOperation, "system-mac-syscall", fourteen, codexRuntime},
	{isOperation, "system-socket", 0, appleApplication},
	{isOperation, "user-preference-read", 0, apples + "com.apple.WindowServer.sb"},

	{isFilter, `(extension "…")`, 0, appleApplication},
	{isFilter, "(fsctl-command FSIOC_CAS_BSDFLAGS)", 0, codexRuntime},
	{isFilter, `(global-name "…")`, 0, appleApplication},
	{isFilter, `(iokit-registry-entry-class "…")`, 0, appleApplication},
	{isFilter, typingFilter, 0, nvx},
	{isFilter, `(ipc-posix-name "…")`, 0, appleApplication},
	{isFilter, `(ipc-posix-name-prefix "…")`, 0, appleSystem},
	{isFilter, `(ipc-posix-name-regex "…")`, 0, codexBase},
	{isFilter, `(literal "…")`, 0, appleApplication},
	{isFilter, "(local ip)", 0, appleApplication},
	{isFilter, "(local unix-socket (…))", 0, codexSockets},
	{isFilter, `(mac-policy-name "…")`, fourteen, codexRuntime},
	{isFilter, "(mac-syscall-number 67)", fourteen, codexRuntime},
	{isFilter, `(path-literal "…")`, 0, appleRules},
	{isFilter, `(preference-domain "…")`, 0, appleApplication},
	{isFilter, `(regex "…")`, 0, appleApplication},
	{isFilter, "(remote ip)", 0, appleApplication},
	{isFilter, `(remote ip "…")`, 0, appleApplication},
	{isFilter, "(remote unix-socket (…))", 0, appleRules},
	{isFilter, "(require-all (…))", 0, appleApplication},
	{isFilter, "(socket-domain AF_SYSTEM)", 0, appleApplication},
	{isFilter, "(socket-domain AF_UNIX)", fourteen, codexSockets},
	{isFilter, "(socket-protocol 2)", 0, appleApplication},
	{isFilter, `(subpath "…")`, 0, appleApplication},
	{isFilter, `(sysctl-name "…")`, 0, appleApplication},
	{isFilter, `(sysctl-name-prefix "…")`, 0, apples + "com.apple.nehelper.sb"},
	{isFilter, "(target same-sandbox)", 0, appleApplication},
	{isFilter, "(target self)", 0, apples + "com.apple.AppSSOAgent.sb"},
	{isFilter, "(vnode-type SYMLINK)", 0, appleApplication},

	{isModifier, `(with message "…")`, fourteen, claude},
	{isCall, parameterSymbol, 0, appleApplication},
}

// symbolSince is symbols by their names.
var symbolSince = func() map[string]int {
	since := map[string]int{}
	for _, symbol := range symbols {
		since[symbol.name] = symbol.since
	}
	return since
}()

// openByVersion are operations that "(deny default)" does not close: the first
// version of the profile language allows them, and only a rule with the
// operation's name takes that back. Apple's own profiles deny process-info*,
// nvram* and file-map-executable after it (apsd.sb), and links in the library
// (application.sb). Each has a line, so that a compiler may lack one.
var openByVersion = []string{
	"process-info*", "file-map-executable", "file-link", "file-clone", "file-test-existence", "nvram*",
}
