package seccomp

// A process may change the priority, processors, scheduling and limits of every
// other process of the same user, and Landlock does not govern that. A limit on
// processor time makes the kernel kill a process. A filter cannot
// know which processes belong to the session. So the supervisor decides, or, if
// there is none, a process can change only itself.

// The first argument of setpriority(2) and of ioprio_set(2) says what the
// second one identifies.
const (
	prioProcess, prioGroup, prioUser       = 0, 1, 2 // PRIO_PROCESS, PRIO_PGRP, PRIO_USER
	ioprioProcess, ioprioGroup, ioprioUser = 1, 2, 3 // IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP, IOPRIO_WHO_USER
)

// schedulingCalls identify a thread by their first argument; 0 is the caller.
var schedulingCalls = []string{"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}

// limitCall identifies a process by its first argument; 0 is the caller.
const limitCall = "prlimit64"

// priorityCalls identify a process, group or user by their second argument. 0
// is the caller or its group, which was created in the session.
var priorityCalls = []struct {
	call                 string
	process, group, user uint32
}{
	{"setpriority", prioProcess, prioGroup, prioUser},
	{"ioprio_set", ioprioProcess, ioprioGroup, ioprioUser},
}

// PriorityCalls are the calls that a supervisor decides about if
// [Filtering.Priorities] is true. Each is given with the argument, counted from
// 0, that names the thread, process or process group.
func PriorityCalls() map[string]int {
	calls := map[string]int{limitCall: 0}
	for _, call := range schedulingCalls {
		calls[call] = 0
	}
	for _, p := range priorityCalls {
		calls[p.call] = 1
	}
	return calls
}

// priorityRules are the rules for a session with or without a supervisor.
func priorityRules(supervised bool) []rule {
	others, why := refuseEPERM, "another process, which may be outside; no supervisor can decide"
	if supervised {
		others, why = actionNotify, "another process, which may be outside"
	}
	rules := []rule{
		{call: limitCall, when: []condition{argIs(0, 0)}, do: actionAllow, why: "the process's own limits"},
		{call: limitCall, when: []condition{{
			arg: 2, mask: ^uint64(0),
		}}, do: actionAllow, why: "reads limits and sets none"},
		{call: limitCall, do: others, why: why},
	}
	for _, call := range schedulingCalls {
		rules = append(rules,
			rule{call: call, when: []condition{argIs(0, 0)}, do: actionAllow, why: "the calling thread"},
			rule{call: call, do: others, why: why},
		)
	}
	for _, p := range priorityCalls {
		rules = append(rules,
			rule{
				call: p.call, when: []condition{argIs(0, p.user)}, do: refuseEPERM,
				why: "all processes of the user, also those outside",
			},
			rule{
				call: p.call, when: []condition{argIs(1, 0)}, do: actionAllow,
				why: "the calling thread or its group",
			},
			rule{call: p.call, when: []condition{argIs(0, p.process)}, do: others, why: why},
			rule{
				call: p.call, when: []condition{argIs(0, p.group)}, do: others,
				why: "another group, which may be outside",
			},
		)
	}
	return rules
}
