package main

// kernel is one machine to boot.
type kernel struct {
	// name is its name in the tables.
	name string
	// machine is the architecture; nil: amd64.
	machine *architecture
	// archive and suite are where Debian keeps its package; archive is the part
	// after the mirror's name.
	archive, suite string
	// pattern matches the names of its packages; the newest one is used.
	pattern string
	// cmdline is added to the kernel's command line.
	cmdline string
	// without are features that tests cannot have here, besides the protections
	// that are not expected to be enforced.
	without []string
	// suites run here, besides doctor's attacks.
	suites []suite
	// memory is the machine's, in MiB; 0: enough for most suites.
	memory int
	// why says what this kernel is tested for.
	why string
}

// architecture is that of the kernel.
func (k kernel) architecture() architecture {
	if k.machine == nil {
		return amd64
	}
	return *k.machine
}

// forFifty is memory for fifty sessions that reach the lowest limit at once.
const forFifty = 5 << 10

// Debian's names of one kernel differ over time in more than the last number,
// so the patterns fix only the first two.
const (
	linux510 = `linux-image-5\.10\..*-cloud-amd64`
	linux61  = `linux-image-6\.1\..*-cloud-amd64`
	linux612 = `linux-image-6\.12\..*-cloud-amd64`
	linux7   = `linux-image-7\..*-cloud-amd64`

	linux612ARM = `linux-image-6\.12\..*-cloud-arm64`
)

// kernels are the machines. Debian keeps more versions. Each of these differs
// from the others in a feature that the code checks for. There is no package
// with Landlock's ABI 1, 3, 4 or 5 (Linux 5.13 to 6.11 without 6.1): package
// linux emulates those by their rulesets.
var kernels = []kernel{
	{
		name: "5.10", archive: "debian-security", suite: "bullseye-security", pattern: linux510,
		suites: groups([]string{asRoot, asDelegated}, escaping), without: []string{"signal_domains"},
		why: "no Landlock, no cgroup.kill",
	},
	{
		name: "6.1", archive: "debian-security", suite: "bookworm-security", pattern: linux61,
		suites: []suite{
			attacks, launching, confining, filtering, isolating, connecting, escaping,
			limits([]string{asDelegated}, "TestLimits_InACgroupOfTheSidecarsOwn"),
		},
		why: "the oldest Landlock that Debian has",
	},
	{
		name: "6.12", archive: "debian-security", suite: "trixie-security", pattern: linux612,
		suites: []suite{attacks, signalDomains, limiting, sessions, connecting}, memory: forFifty,
		why: "Landlock restricts signals",
	},
	{
		name: "7", archive: "debian", suite: "trixie-backports", pattern: linux7,
		suites: []suite{
			attacks, confining, filtering, isolating, signalDomains, connecting, silence,
			limits([]string{asRoot}, "TestLimits_InACgroupOfTheSidecarsOwn"),
		},
		cmdline: "audit=1",
		why:     "Landlock restricts Unix sockets, and audit is on",
	},
	{
		name: "6.1-landlock-off", archive: "debian-security", suite: "bookworm-security", pattern: linux61,
		cmdline: "lsm=yama,apparmor", suites: []suite{escaping}, without: []string{"signal_domains"},
		why: "Landlock is built in but switched off",
	},
	{
		name: "6.12-controllers-off", archive: "debian-security", suite: "trixie-security", pattern: linux612,
		cmdline: "cgroup_disable=memory,pids,cpu,io", suites: groups([]string{asRoot}, escaping),
		without: []string{"cgroup_controllers", "threaded_controllers"},
		why:     "cgroups without a controller that limits",
	},
	{
		name: "6.12-hybrid", archive: "debian-security", suite: "trixie-security", pattern: linux612,
		cmdline: "sidecar.cgroup=hybrid", suites: groups([]string{asDelegated}, escaping),
		without: []string{"threaded_controllers"}, // pids belongs to v1
		why:     "cgroup v2 next to v1, mounted elsewhere",
	},
	{
		name: "6.12-wsl2", archive: "debian-security", suite: "trixie-security", pattern: linux612,
		cmdline: "lsm=landlock,lockdown,yama,loadpin,safesetid,integrity,selinux,apparmor,tomoyo " +
			"sidecar.securityfs=off",
		why: "Debian's kernel with the security modules that WSL2's kernel has, and no file system that lists them",
	},
	{
		name: "6.12-arm64", machine: &arm64, archive: "debian-security", suite: "trixie-security", pattern: linux612ARM,
		why: "the other architecture, with doctor's attacks only, because there are no programs for it here",
	},
}
