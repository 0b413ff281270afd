package document

// To add a setting: add a field here with its doc comment, which becomes the
// reference and the schema. Give it a default in defaults.go. A key of a single
// value needs a row of the table in settings/compile/scalars.go, which says how an
// untrusted project and the organisation tighten it; a list of paths goes to
// settings/compile/grant.go. Run "make generate". Decoding, layering and origins
// need no change.

// Sandbox is the "terminal.sandbox" block of a settings file. A nil field was
// not written or is null: it inherits.
type Sandbox struct {
	// Enabled switches the sandbox on.
	Enabled *bool `json:"enabled"`
	// Mode sets several keys at once, as the table says. The keys beside it in
	// the same block override what it sets.
	Mode *Mode `json:"mode"`
	// ApplyTo says which kinds of session are restricted: the user's own
	// terminals, the agent's tools, both or neither. Processes are always
	// tracked and ended with their session.
	ApplyTo *ApplyTo `json:"apply_to"`
	// SystemPaths are the parts of the system that shells and tools need. A
	// category that is null is the platform's baseline. An array replaces that
	// category alone, and [] denies all of it.
	SystemPaths *SystemPaths `json:"system_paths"`
	// AdditionalExecutablePaths may be read and executed: toolchains, programs
	// installed for the user.
	AdditionalExecutablePaths []string `json:"additional_executable_paths"`
	// AdditionalReadOnlyPaths may be read.
	AdditionalReadOnlyPaths []string `json:"additional_read_only_paths"`
	// AdditionalReadWritePaths may be read, written and executed, as the
	// project itself. An entry that would undo the sandbox does not count: /,
	// /proc, /sys, the directories of the settings and of the sidecar's state,
	// the sidecar's own program.
	AdditionalReadWritePaths []string `json:"additional_read_write_paths"`
	// AllowNetwork set to false leaves no network at all, except loopback
	// inside the session if the host can isolate it.
	AllowNetwork *bool `json:"allow_network"`
	// AllowedHosts are hosts that sessions reach by TCP while allow_network is
	// false. An entry is a name, *.NAME for all names below it, or addresses as
	// ADDRESS/BITS; :PORT behind it allows that port alone. At port 443 only TLS
	// passes, unless the entry is tcp://HOST:443, as for ssh at ssh.github.com.
	// tls://HOST:PORT lets only TLS pass at another port. No certificates are
	// needed, and on Linux no variables. A name that leads into a private network
	// needs an entry for its addresses, too. localhost:PORT is a service of this
	// machine, which sessions reach as host.sandbox.internal. Of this machine's
	// services, such entries count while allow_network is true, too; see localhost.
	// Sessions then reach the service at its own address. Toolchains add the
	// registries that their tools download from. An empty list allows none of
	// these either.
	AllowedHosts []string `json:"allowed_hosts"`
	// DeniedHosts are exceptions from allowed_hosts, in the same form without
	// tcp:// and tls://.
	DeniedHosts []string `json:"denied_hosts"`
	// Localhost says which services of this machine sessions reach while
	// allow_network is true, by TCP, on Linux. "own": what sessions of the same
	// project or git working tree listen with, localhost:PORT of allowed_hosts,
	// proxies that HTTP_PROXY and its kin name, and the machine's DNS server. "all":
	// those of all programs, such as debuggers, databases and Docker. "none": not
	// one.
	Localhost *Localhost `json:"localhost"`
	// AllowedEnvVars are the variables that sessions get: NAME or PREFIX_*. A list
	// in which each entry begins with "+", as "+NAME", adds to the list that would
	// count without it; other lists replace that. A project's file adds nothing
	// unless it is trusted. TERM, COLORTERM, TERM_PROGRAM, TERM_PROGRAM_VERSION and
	// ZED_TERM always pass if they are set. Variables that make loaders, shells or
	// interpreters run code (LD_*, BASH_ENV, NODE_OPTIONS, …) need their exact
	// name. A variable of certificates also makes the file readable that it names.
	// Variables that say where packages come from, as PIP_INDEX_URL, pass by default
	// without names and passwords in their addresses; in a list they pass whole.
	AllowedEnvVars []string `json:"allowed_env_vars"`
	// AllowedUnixSockets are sockets of outside processes that sessions may
	// connect to: exact paths, $SSH_AUTH_SOCK, abstract:NAME. A granted socket
	// gives the full power of the daemon behind it.
	AllowedUnixSockets []string `json:"allowed_unix_sockets"`
	// SigningKeys are the keys of your ssh-agent and gpg-agent that sessions with
	// the toolchains ssh and gpg may use, to sign and to log in. An entry is a
	// fingerprint as "ssh-add -l" shows it, a keygrip as "gpg -K --with-keygrip"
	// shows it, or "*" for all keys. "ask:" before it makes each use a question to
	// you, whatever on_denied says. An empty list allows none. With any other list
	// than ["*"], a socket of these agents in allowed_unix_sockets gives no more
	// than the toolchain does.
	SigningKeys []string `json:"signing_keys"`
	// Credentials are secrets that sessions use without having them, on
	// Linux. A session has a placeholder in the place of each: in the
	// variable NAME, or in its own copy of the file ~/PATH. In requests to
	// one of the hosts the secret takes its place, in headers of
	// authentication. Sent anywhere else, the placeholder is refused and
	// reported. A host that is none of allowed_hosts is not reached. With
	// an empty list of hosts the secret is only kept away. Entries of
	// several files add up, and null takes one away. A project's file adds
	// nothing unless it is trusted.
	Credentials map[string]*Credential `json:"credentials"`
	// ProtectedPaths stay read-only although they lie inside the project, or in
	// another directory that sessions may write. They are added to the built-in
	// list, which counts in the project and in each such directory. "!path" takes
	// one away from that list, with everything below it, and "!*" takes all away.
	// A * in the last name stands for any characters. Paths that do not exist
	// cannot be created. Relative ones are relative to the project. "**/name"
	// protects that name in every directory of the project but those in
	// node_modules and .git. What a protected symlink leads to is protected, too.
	// Where sessions may not write, no question and no suggestion opens them.
	ProtectedPaths []string `json:"protected_paths"`
	// HiddenPaths are kept from sessions although they lie inside of what is
	// granted, on Linux with namespaces: a session finds an empty directory, or a
	// file that it cannot open. They are added to the built-in list: places of
	// keys, tokens and passwords in your home directory, files that only you may
	// read in ~/.config or in a home directory that is granted as a whole, and for
	// root the system's. A grant of exactly such a path, or of one below it, wins.
	// A * in the last name stands for any characters in names that exist when the
	// session starts. Relative ones are relative to the project. "**/name" hides
	// what has that name in any directory of the project when the session starts,
	// but not in node_modules and .git.
	HiddenPaths []string `json:"hidden_paths"`
	// ParentRepository says what sessions get of the git repository above a project
	// that has none of its own, such as a package of a monorepo. "read": git works,
	// and they may read and execute the files of its working tree. "git": git
	// works, and they see nothing else of the repository. Its objects hold all
	// files of all commits. "off": nothing. git changes objects, index and refs, on
	// machines that can protect hooks and configuration. A repository does not
	// count if git ignores the project in it, or refuses it. Nor does one whose
	// working tree is a home directory or one of the system, holds known secrets, or
	// belongs to another user.
	ParentRepository *ParentRepository `json:"parent_repository"`
	// TemporaryFiles set to "private" gives the sessions of each project a /tmp,
	// /var/tmp and /dev/shm of their own, on Linux with namespaces. They are
	// removed when the editor ends. Paths and sockets in them that other keys
	// grant, and a project that lies there, stay as they are. A whole one is
	// shared if additional_read_write_paths has it, or a directory above. Without
	// namespaces only TMPDIR names a directory of the project's own. "shared" lets
	// sessions read and write what programs outside keep there.
	TemporaryFiles *TemporaryFiles `json:"temporary_files"`
	// Limits bound what a session takes of the machine.
	Limits *Limits `json:"limits"`
	// Toolchains are named sets of well-known paths, variables and registries:
	// go, rust, node, python, java, ruby, dotnet, php, c, nix, ssh, gpg.
	Toolchains []string `json:"toolchains"`
	// ToolchainCaches set to "private" keeps what sessions write to the caches of
	// toolchains from programs outside, on Linux. Sessions see the real caches
	// with the changes of all your sandboxed sessions. "sandbox-sidecar cache"
	// lists the changes and clears them. A cache that another key also grants
	// for writing stays shared. "shared" lets sessions write the real caches,
	// whose content programs outside run.
	ToolchainCaches *ToolchainCaches `json:"toolchain_caches"`
	// Shell is a program with its arguments. Terminals start it, and a command
	// line is passed to it after "-c". With null, terminals start the program of
	// "terminal.shell" in your Zed file, else your own shell. Command lines are
	// then run by bash, or by /bin/sh if there is no bash.
	Shell []string `json:"shell"`
	// OnUnavailable says what happens if the machine cannot enforce the
	// sandbox. null: refuse for tools, warn for terminals.
	OnUnavailable *OnUnavailable `json:"on_unavailable"`
	// OnDenied says what a denial does besides failing. On Linux, "report" does
	// not notice every refused read. It notices those of files that a command
	// line names, as with cat, cp, sed and grep. In an editor's session it also
	// notices those that a program prints. "ask" notices all of them, which slows
	// down programs that open thousands of files. "ask" asks about opening files,
	// because an open file is what the sidecar can pass to a waiting program. An
	// answer can open the whole directory of a file, until the session ends. To
	// make, remove or rename files is a question about their directory. While
	// the network is off, it also asks about each host, where allowed_hosts works.
	// Executing and Unix sockets are refused at once and reported.
	OnDenied *OnDenied `json:"on_denied"`
	// ProcessTracking chooses how processes are tracked on macOS. It was never run
	// on a Mac.
	ProcessTracking *ProcessTracking `json:"process_tracking"`
	// Audit set to "file" notes in a file of yours what sessions run, what they
	// are refused, what you answer and what you trust. "journal" writes the same
	// to the journal of systemd. "sandbox-sidecar audit" shows it. Only your own
	// settings and your organisation's count.
	Audit *Audit `json:"audit"`
	// AuditRequired set to true lets no session start that cannot be noted: if
	// the disk is full, for example. Otherwise the next line says how many were
	// lost. Only your own settings and your organisation's count.
	AuditRequired *bool `json:"audit_required"`
	// AuditArgv says what of a program's arguments "audit" keeps. "redacted"
	// leaves out what looks like a secret. "program" keeps no arguments, only the
	// program. Only your own settings and your organisation's count. What your
	// organisation requires counts before yours.
	AuditArgv *AuditArgv `json:"audit_argv"`
	// Tool overrides the other keys for the agent's tools, key by key. Its own
	// "enabled" decides for them whatever apply_to says.
	Tool *Sandbox `json:"tool,omitempty"`
	// Terminal overrides the other keys for the user's own terminals, in the
	// same way.
	Terminal *Sandbox `json:"terminal,omitempty"`
}

// Credential is a secret that sessions use without having it. Its name is that of a
// variable, the path of a file, or any name of a command's.
type Credential struct {
	// Hosts are where the secret is sent, by HTTPS: NAME, or *.NAME for all names
	// below it. :PORT behind it is another port than 443.
	Hosts []string `json:"hosts"`
	// Command prints the secret on its first line. It runs outside, when the secret
	// is first used. It has no terminal, and may ask in a window of its own.
	Command []string `json:"command"`
	// As is the variable that has the placeholder of a command's secret.
	As *string `json:"as"`

	// At is where the entry stands, and File in which file; "" until files
	// are merged.
	At   Position `json:"-"`
	File string   `json:"-"`
}

// SystemPaths are the parts of the system that shells and tools need, by
// access.
type SystemPaths struct {
	// Executable may be read and executed: programs and libraries.
	Executable []string `json:"executable"`
	// ReadOnly may be read: configuration, data, certificates.
	ReadOnly []string `json:"read_only"`
	// ReadWrite may be read, written and executed: temporary directories,
	// devices. On Linux "/dev/ptmx" lets a session open terminals of its own;
	// "/dev/pts" lets it open those of all your programs.
	ReadWrite []string `json:"read_write"`
}

// Limits bound what a session takes of the machine.
type Limits struct {
	// Processes is how many processes and threads a session has at most, on
	// Linux for ordinary users with user namespaces. Then fork(2) fails, in this
	// session alone. Other programs of yours do not count.
	Processes *int `json:"processes"`
	// Memory is how much memory a session has at most: "512M" or "8G" (powers of
	// 1024, at least 64M), or a part of the machine's, as "75%". It has as much
	// swap again. At the limit the kernel ends a tool as a whole, and of a
	// terminal or a group the largest process. It needs a cgroup with a
	// controller of memory, on Linux; "doctor" says whether there is one.
	Memory *string `json:"memory"`
	// CPUWeight is a session's share of a busy processor, from 1 to 10000,
	// compared with 100 for the sidecar and for other sessions. It needs a
	// cgroup, as memory does.
	CPUWeight *int `json:"cpu_weight"`
	// Connections is how many connections to hosts a session has at a time while
	// the network is off and allowed_hosts opens some; a quarter of them may be
	// waiting for their host. Beyond, connect(2) fails with EADDRNOTAVAIL. Beside
	// the first 16, each has 256 KiB for bytes that nobody has read, and all
	// together 64 MiB. A session never has more than a quarter of what the
	// sidecar's open files allow.
	Connections *int `json:"connections"`
}

// Mode is a shorthand for several keys.
type Mode string

const (
	// ModeStrict sandboxes tools and terminals without a network. They have the
	// project and the system's own programs: the "additional" lists, sockets and
	// toolchains are empty.
	ModeStrict Mode = "strict"
	// ModeStandard sandboxes tools and terminals, with the network, as the
	// defaults of the other keys say.
	ModeStandard Mode = "standard"
	// ModeRelaxed sandboxes tools and terminals, with the network, and lets
	// them read and execute the whole disk. Hidden paths, such as your keys and
	// passwords, are left out on Linux with namespaces; elsewhere they are read,
	// too. What they may write, protected paths and the end of processes stay.
	ModeRelaxed Mode = "relaxed"
	// ModeOff sandboxes nothing.
	ModeOff Mode = "off"
)

// ApplyTo says which kinds of session are restricted.
type ApplyTo string

const (
	// ApplyToTerminal restricts the user's own terminals.
	ApplyToTerminal ApplyTo = "terminal"
	// ApplyToTool restricts the agent's tools.
	ApplyToTool ApplyTo = "tool"
	// ApplyToBoth restricts both.
	ApplyToBoth ApplyTo = "both"
	// ApplyToNeither sandboxes nothing; the other keys are kept but have no
	// effect.
	ApplyToNeither ApplyTo = "neither"
)

// Localhost says which services of this machine sessions with the network reach.
type Localhost string

const (
	// LocalhostOwn opens those of sessions of the same project, and what other keys
	// and the machine's configuration name.
	LocalhostOwn Localhost = "own"
	// LocalhostAll opens those of all programs.
	LocalhostAll Localhost = "all"
	// LocalhostNone opens none.
	LocalhostNone Localhost = "none"
)

// ParentRepository says what sessions get of the repository above the project.
type ParentRepository string

const (
	// ParentRead opens the repository to git, and its working tree for reading.
	ParentRead ParentRepository = "read"
	// ParentGit opens the repository to git.
	ParentGit ParentRepository = "git"
	// ParentOff opens nothing.
	ParentOff ParentRepository = "off"
)

// TemporaryFiles says who shares the directories of temporary files.
type TemporaryFiles string

const (
	// TemporaryFilesPrivate gives the sessions of each project their own.
	TemporaryFilesPrivate TemporaryFiles = "private"
	// TemporaryFilesShared shares those of all programs.
	TemporaryFilesShared TemporaryFiles = "shared"
)

// ToolchainCaches says who sees what sessions write to caches of toolchains.
type ToolchainCaches string

const (
	// ToolchainCachesPrivate shows it to your sandboxed sessions alone.
	ToolchainCachesPrivate ToolchainCaches = "private"
	// ToolchainCachesShared shows it to all programs.
	ToolchainCachesShared ToolchainCaches = "shared"
)

// OnUnavailable is the reaction to a machine that cannot enforce the sandbox.
type OnUnavailable string

const (
	// OnUnavailableRefuse starts nothing.
	OnUnavailableRefuse OnUnavailable = "refuse"
	// OnUnavailableWarn starts the session without a sandbox, with a warning as
	// the terminal's first line.
	OnUnavailableWarn OnUnavailable = "warn"
)

// OnDenied is the reaction to a refused access.
type OnDenied string

const (
	// OnDeniedReport reports the denial to the editor, with the setting that
	// would allow it.
	OnDeniedReport OnDenied = "report"
	// OnDeniedAsk asks the editor's user.
	OnDeniedAsk OnDenied = "ask"
	// OnDeniedIgnore does nothing.
	OnDeniedIgnore OnDenied = "ignore"
)

// ProcessTracking is how processes are tracked on macOS.
type ProcessTracking string

const (
	// ProcessTrackingAuto picks the way that breaks least.
	ProcessTrackingAuto ProcessTracking = "auto"
	// ProcessTrackingSeatbelt marks every process with a Seatbelt fingerprint.
	ProcessTrackingSeatbelt ProcessTracking = "seatbelt"
)

// Audit says where an audit trail is kept.
type Audit string

const (
	// AuditOff keeps none.
	AuditOff Audit = "off"
	// AuditFile writes files in the sidecar's state directory.
	AuditFile Audit = "file"
	// AuditJournal writes to the journal of systemd.
	AuditJournal Audit = "journal"
)

// AuditArgv says what an audit trail keeps of arguments.
type AuditArgv string

const (
	// AuditArgvRedacted keeps them without what looks like a secret.
	AuditArgvRedacted AuditArgv = "redacted"
	// AuditArgvProgram keeps none.
	AuditArgvProgram AuditArgv = "program"
)
