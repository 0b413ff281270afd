package seccomp

// ExistenceCalls are the calls whose signal 0 the supervisor answers if
// [Filtering.Priorities] is true. Their second argument is the signal.
func ExistenceCalls() []string { return []string{"kill", "pidfd_send_signal"} }

// existenceRules send the question whether a process exists to the supervisor.
// Every other signal is left to Landlock.
func existenceRules() (rules []rule) {
	for _, call := range ExistenceCalls() {
		rules = append(rules, rule{
			call: call, when: []condition{argIs(1, 0)}, do: actionNotify,
			why: "asks whether a process exists; Landlock answers EPERM, which programs take for its end",
		})
	}
	return rules
}
