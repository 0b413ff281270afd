package darwin

// service is a Mach service that sessions may look up, and what fails without
// it.
type service struct{ name, reason string }

// baseServices answer questions and act for nobody. Services that start
// programs or open files for their clients must not be listed, because a
// session would escape through them: launchservicesd, lsd, coreservicesd,
// AppleEvents, the authorization trampoline, the window server, the pasteboard.
// Three that other projects list show too much, see docs/design/seatbelt.md:
// the key chain's, com.apple.sysmond and com.apple.bsd.dirhelper.
var baseServices = []service{
	{"com.apple.system.opendirectoryd.libinfo", "getpwuid(3), getaddrinfo(3)"},
	{"com.apple.system.opendirectoryd.membership", "getgrouplist(3), initgroups"},
	{"com.apple.system.DirectoryService.libinfo_v1", "the older name of the same"},
	{"com.apple.system.notification_center", "notify(3): changes of time zone and network"},
	{"com.apple.logd", "os_log(3)"},
	{"com.apple.system.logger", "syslog(3)"},
	{"com.apple.cfprefsd.agent", "CFPreferences, for the process's own"},
	{"com.apple.cfprefsd.daemon", "CFPreferences, for the machine's"},
	{"com.apple.PowerManagement.control", "the JVM asks for the state of power at its start"},
}

// nameServices tell names of files anywhere on the disk, also of files that a
// session may not open.
var nameServices = []service{
	{"com.apple.FSEvents", "watchers of directories: vite, webpack, jest, fs.watch of node"},
}

// networkServices are needed for names and certificates.
var networkServices = []service{
	{"com.apple.trustd", "certificates: every TLS client in Go asks here"},
	{"com.apple.trustd.agent", "certificates of the user"},
	{"com.apple.SystemConfiguration.DNSConfiguration", "which servers to ask for names"},
	{"com.apple.SystemConfiguration.configd", "proxies and interfaces"},
	{"com.apple.networkd", "the system's own network stack"},
	{"com.apple.nehelper", "network extensions: VPNs"},
	{"com.apple.dnssd.service", "names by multicast"},
}
