package seccomp

// Every process may change the priority, the processors and the scheduling of
// all others of the same user, and Landlock does not see it. Which processes
// are the session's a filter cannot know: a supervisor is asked where there is
// one, and otherwise a process changes only itself.

// The first argument of setpriority(2) and of ioprio_set(2) says what the
// second one names.
const (
	prioProcess, prioGroup, prioUser       = 0, 1, 2 // PRIO_PROCESS, PRIO_PGRP, PRIO_USER
	ioprioProcess, ioprioGroup, ioprioUser = 1, 2, 3 // IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP, IOPRIO_WHO_USER
)

// schedulingCalls name a thread by their first argument, and by 0 the caller.
var schedulingCalls = []string{"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}

// priorityCalls are the calls that name something by their second argument, and
// by 0 the caller or its group, which began in the session.
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
	calls := map[string]int{}
	for _, call := range schedulingCalls {
		calls[call] = 0
	}
	for _, p := range priorityCalls {
		calls[p.call] = 1
	}
	return calls
}

// priorityRules are those of a session whose supervisor knows its processes, or
// of one where nobody does.
func priorityRules(supervised bool) []rule {
	others, why := refuse(eperm), "of another process, which may be one outside; nobody is there to tell"
	if supervised {
		others, why = actionNotify, "of another process, which may be one outside"
	}
	var rules []rule
	for _, call := range schedulingCalls {
		rules = append(rules,
			rule{call: call, when: []condition{argIs(0, 0)}, do: actionAllow, why: "the calling thread's own"},
			rule{call: call, do: others, why: why},
		)
	}
	for _, p := range priorityCalls {
		rules = append(rules,
			rule{call: p.call, when: []condition{argIs(0, p.user)}, do: refuse(eperm),
				why: "of all processes of the user, those outside too"},
			rule{call: p.call, when: []condition{argIs(1, 0)}, do: actionAllow,
				why: "the calling thread's own, or its group's"},
			rule{call: p.call, when: []condition{argIs(0, p.process)}, do: others, why: why},
			rule{call: p.call, when: []condition{argIs(0, p.group)}, do: others, why: "of another group; see above"},
		)
	}
	return rules
}
