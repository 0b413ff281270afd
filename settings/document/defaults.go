package document

import "slices"

// Defaults are the settings that hold if no file says otherwise. A key is nil
// if its default depends on the platform (system_paths), on the project
// (protected_paths) or on the kind of session (on_unavailable). The caller owns
// the result.
func Defaults() Sandbox {
	return Sandbox{
		Enabled:                   new(false),
		ApplyTo:                   new(ApplyToBoth),
		AdditionalExecutablePaths: []string{},
		AdditionalReadOnlyPaths:   []string{},
		AdditionalReadWritePaths:  []string{},
		AllowNetwork:              new(true),
		AllowedHosts:              []string{},
		DeniedHosts:               []string{},
		Localhost:                 new(LocalhostOwn),
		AllowedEnvVars:            slices.Clone(DefaultEnvVars),
		AllowedUnixSockets:        []string{},
		SigningKeys:               []string{"*"},
		Credentials:               map[string]*Credential{},
		HiddenPaths:               []string{},
		ParentRepository:          new(ParentRead),
		TemporaryFiles:            new(TemporaryFilesPrivate),
		Limits: &Limits{
			Processes: new(4096), Memory: new("75%"), CPUWeight: new(100), Connections: new(256),
		},
		Toolchains:      []string{},
		ToolchainCaches: new(ToolchainCachesPrivate),
		OnDenied:        new(OnDeniedReport),
		ProcessTracking: new(ProcessTrackingAuto),
		Audit:           new(AuditOff),
		AuditRequired:   new(false),
		AuditArgv:       new(AuditArgvRedacted),
	}
}

// DefaultEnvVars say who and where the user is, how the network is reached, and
// where packages come from. Only a proxy's address may hold a secret.
// SSH_AUTH_SOCK is only a name: the socket needs a grant of its own.
var DefaultEnvVars = slices.Concat([]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TERM_PROGRAM", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "EDITOR",
	"VISUAL", "CI", "GOPRIVATE", "GONOPROXY", "GONOSUMDB",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GPG_TTY",
}, DisplayVariables, ProxyVariables, CertificateVariables, RegistryVariables)

// DisplayVariables say how programs show text and time, and hold no secret:
// locale(7), gettext(3), tzset(3), less(1), ls(1), and no-color.org.
var DisplayVariables = []string{
	"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "TZ",
	"COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LS_COLORS", "LSCOLORS", "GREP_COLORS",
	"PAGER", "MANPAGER", "LESS", "LESSCHARSET",
}

// ProxyVariables are the addresses of proxies, and of hosts that need none.
var ProxyVariables = []string{
	"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "all_proxy", "no_proxy",
}

// RegistryVariables say where packages come from: go help environment, npm help
// config, yarn's documents of its configuration, pip install --help, uv's and
// cargo's documents of their variables, dart.dev, hexdocs.pm. Without them programs
// would ask the public registry. Unless a list of the user's has them, their
// addresses lose their names and passwords; see policy.Environment.
var RegistryVariables = []string{
	"GOPROXY", "GOSUMDB",
	"NPM_CONFIG_REGISTRY", "npm_config_registry", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_TRUSTED_HOST",
	"UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "UV_NO_INDEX",
	"CARGO_REGISTRY_DEFAULT", "PUB_HOSTED_URL", "HEX_MIRROR",
}

// CertificateVariables name files and directories of certificates: those of
// OpenSSL and Go, Node, Python, pip, curl, git, and Amazon's tools.
var CertificateVariables = []string{
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE",
	"GIT_SSL_CAINFO", "AWS_CA_BUNDLE",
}

// DefaultOnUnavailable is what a null on_unavailable means. Tools are refused
// because nobody watches them; a user without a terminal would be stuck.
func DefaultOnUnavailable(kind Kind) OnUnavailable {
	if kind == KindTerminal {
		return OnUnavailableWarn
	}
	return OnUnavailableRefuse
}
