package document

import (
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// Zed's own agent has "agent.sandbox_permissions", for the commands that it
// runs. In the user's Zed file they count for tools, as a layer below the
// file's "terminal.sandbox". They never turn the sandbox on.

const agentPrefix = "agent.sandbox_permissions."

// Agent are the keys that Zed's permissions stand for.
type Agent struct {
	Values Sandbox
	Spans  map[string]Span
}

// OfAgent reports whether a key was set by Zed's permissions.
func OfAgent(span Span) bool { return strings.HasPrefix(span.Written, agentPrefix) }

// agentLists are the permissions that are lists, with the keys they stand for.
var agentLists = map[string]string{
	"write_paths":   "additional_read_write_paths",
	"network_hosts": "allowed_hosts",
}

// agentRisks say why a permission has no effect here.
var agentRisks = map[string]string{
	"allow_fs_write_all": "tools could change every file of yours; " +
		"list what they need in additional_read_write_paths",
	"allow_unsandboxed": "tools could do everything that you may; apply_to says what is sandboxed",
}

// agent decodes Zed's permissions. What is wrong in them opens nothing. It is
// Zed's to report, so it is a warning, and tools start.
func (d *decoder) agent(root *hujson.Object) {
	whole := hujson.Value{Value: root}
	permissions := lastMember(lastMember(&whole, "agent"), "sandbox_permissions")
	if permissions == nil {
		return
	}
	object, is := permissions.Value.(*hujson.Object)
	if !is || len(object.Members) == 0 {
		return
	}
	if d.project {
		d.report(*permissions, SeverityWarning, agentPrefix[:len(agentPrefix)-1],
			"has no effect in a project: only your own Zed settings can grant it")
		return
	}
	agent := &Agent{Spans: map[string]Span{}}
	for _, member := range object.Members {
		d.permission(agent, member)
	}
	if len(agent.Spans) > 0 {
		d.Agent = agent
	}
}

// permission decodes one of Zed's permissions. Those that are not known are
// Zed's alone.
func (d *decoder) permission(agent *Agent, member hujson.ObjectMember) {
	name := memberName(member)
	written := agentPrefix + name
	span := Span{At: d.at(member.Value.StartOffset), Written: written}
	set := func(key string, value any) {
		KeyNamed(key).Set(&agent.Values, reflect.ValueOf(value))
		agent.Spans[key] = span
	}
	if key, is := agentLists[name]; is {
		list := []string{}
		array, is := member.Value.Value.(*hujson.Array)
		if !is {
			d.report(member.Value, SeverityWarning, written,
				"expected an array of strings, found %s; it does not count", describe(member.Value))
			return
		}
		for _, element := range array.Elements {
			if literal, is := element.Value.(hujson.Literal); is && literal.Kind() == '"' {
				list, span.Elements = append(list, literal.String()), append(span.Elements, d.at(element.StartOffset))
			}
		}
		set(key, list)
		return
	}
	switch kind := member.Value.Value.Kind(); {
	case kind != 't':
		// false grants nothing, and another type counts as little.
	case name == "allow_all_hosts":
		set("allow_network", new(true))
	case name == "allow_git_access":
		d.report(member.Value, SeverityInfo, written,
			"lets tools change git's hooks and configuration, which git runs outside of the sandbox")
		list := []string{"!.git", "!.gitmodules"}
		span.Elements = []Position{span.At, span.At}
		set("protected_paths", list)
	case agentRisks[name] != "":
		d.report(member.Value, SeverityWarning, written, "has no effect: %s", agentRisks[name])
	}
}
