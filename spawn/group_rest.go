package spawn

// noted reports whether there is an audit trail of the group's sessions.
func (g *Group) noted() bool { return g.spawner.Recorder != nil && g.request.Policy.Audit.On() }

// Idle reports whether the group has ended as nothing ran in it: it was retired. It
// must not be called before Done is closed.
func (g *Group) Idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.idle
}

// Rest is what processes in the background have done to files that programs outside
// act on since the group's last session ended. It is empty if the audit trail has
// it. It must not be called before Done is closed.
func (g *Group) Rest() (alarms []Alarm, findings []Finding) { return g.alarms, g.findings }

// noteRest notes what no session was told, at the group's end: in the audit trail of
// the last session, or else for Rest. No process of the group is left, unless g.err
// names it.
func (g *Group) noteRest() {
	g.mu.Lock()
	left, between, last := g.waiting, g.between, g.last
	g.waiting, g.between = waiting{}, nil
	g.mu.Unlock()
	heir := &running{record: last, denials: newDenialQueue(maxDenials), protection: &protectionWatch{record: last}}
	if g.running.denials != nil {
		heir.denials.lacking = g.running.denials.lacking
		heir.kept = g.spawner.keep(&g.request)
	}
	if lost := left.tell(heir); lost > 0 {
		g.running.log.Warn("changes of protected paths after the last command are not listed", "more", lost)
	}
	heir.kept.Flush()
	var findings []Finding
	if between != nil {
		if g.err == nil {
			between.Gone()
		}
		if g.running.wroteNothing(g.err) {
			between.Unwritten()
		}
		if g.running.outcome.PreventsChanges() {
			between.Prevented()
		}
		findings = between.Findings()
	}
	if last != nil {
		last.Left(findings)
		return
	}
	g.alarms, g.findings = heir.protection.alarms, findings
}
