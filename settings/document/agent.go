package document

import (
	"reflect"
	"slices"
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

// agentSwitches are the permissions that are true or false, with the key that
// true stands for.
var agentSwitches = map[string]struct {
	key   string
	value any
}{
	"allow_all_hosts":  {"allow_network", new(true)},
	"allow_git_access": {"protected_paths", []string{"!.git", "!.gitmodules"}},
}

// agentRisks say why a permission has no effect here.
var agentRisks = map[string]string{
	"allow_fs_write_all": "tools could change every file of yours; " +
		"list what they need in additional_read_write_paths",
	"allow_unsandboxed": "tools could do everything that you may; apply_to says what is sandboxed",
}

// agent decodes Zed's permissions in the file's object, or in that of the running
// platform, which prefix names and which is decoded later. What is wrong in them
// opens nothing. It is Zed's to report, so it is a warning, and tools start.
func (d *decoder) agent(root *hujson.Object, prefix string) {
	whole := d.member(root, "agent", prefix)
	object, is := whole.Value.(*hujson.Object)
	if !is {
		return
	}
	permissions := d.member(object, "sandbox_permissions", prefix+"agent.")
	if !asks(&permissions) {
		return
	}
	if object, is = permissions.Value.(*hujson.Object); !is {
		d.report(permissions, SeverityWarning, agentPrefix[:len(agentPrefix)-1],
			"expected an object, found %s; it does not count", describe(permissions))
		return
	}
	if d.project {
		d.report(permissions, SeverityWarning, agentPrefix[:len(agentPrefix)-1],
			"has no effect in a project: only your own Zed settings can grant it")
		return
	}
	if d.Agent == nil {
		d.Agent = &Agent{Spans: map[string]Span{}}
	}
	count := map[string]int{}
	for _, member := range object.Members {
		count[memberName(member)]++
	}
	for _, member := range object.Members {
		if name := memberName(member); count[name] == 1 {
			d.permission(name, member.Value)
		} else {
			d.report(member.Name, SeverityWarning, agentPrefix+name, "written twice; it does not count")
		}
	}
	if len(d.Agent.Spans) == 0 {
		d.Agent = nil
	}
}

// permission decodes one of Zed's permissions. Those that are not known are
// Zed's alone.
func (d *decoder) permission(name string, value hujson.Value) {
	written := agentPrefix + name
	kind := value.Value.Kind()
	key, isList := agentLists[name]
	switches := agentSwitches[name]
	switch {
	case kind == 'n':
	case isList:
		d.permittedList(written, key, value)
	case name == "enabled":
		d.report(value, SeverityWarning, written,
			"has no effect: only enabled in terminal.sandbox switches the sandbox on or off")
	case name == "allow_network":
		d.report(value, SeverityWarning, written, "has no effect: Zed calls it allow_all_hosts")
	case switches.key == "" && agentRisks[name] == "":
		if slices.Contains(blockKeys(), name) {
			d.report(value, SeverityWarning, written, "has no effect; %s", rightPlace)
		}
	case kind != 't' && kind != 'f':
		d.report(value, SeverityWarning, written, "expected true or false, found %s; it does not count",
			describe(value))
	case agentRisks[name] != "":
		if kind == 't' {
			d.report(value, SeverityWarning, written, "has no effect: %s", agentRisks[name])
		}
	case kind == 'f': // it takes back what the file says for all platforms
		if d.Agent.Spans[switches.key].Written == written {
			KeyNamed(switches.key).Clear(&d.Agent.Values)
			delete(d.Agent.Spans, switches.key)
		}
	default:
		span := Span{At: d.at(value.StartOffset), Written: written}
		if list, is := switches.value.([]string); is {
			span.Elements = slices.Repeat([]Position{span.At}, len(list))
			d.report(value, SeverityInfo, written,
				"lets tools change git's hooks and configuration, which git runs outside of the sandbox")
		}
		KeyNamed(switches.key).Set(&d.Agent.Values, cloneValue(reflect.ValueOf(switches.value)))
		d.Agent.Spans[switches.key] = span
	}
}

// permittedList adds the entries of a list to those that the file has for all
// platforms, as Zed does.
func (d *decoder) permittedList(written, key string, value hujson.Value) {
	array, is := value.Value.(*hujson.Array)
	if !is {
		d.report(value, SeverityWarning, written,
			"expected an array of strings, found %s; it does not count", describe(value))
		return
	}
	span, before := d.Agent.Spans[key]
	if !before {
		span = Span{At: d.at(value.StartOffset), Written: written}
	}
	list := append([]string{}, d.Agent.Values.List(key)...)
	for _, element := range array.Elements {
		text, is := permitted(element)
		if !is {
			d.report(element, SeverityWarning, written, "expected a string, found %s; the other entries count",
				describe(element))
			continue
		}
		list, span.Elements = append(list, text), append(span.Elements, d.at(element.StartOffset))
	}
	d.Agent.Values.SetList(key, list)
	d.Agent.Spans[key] = span
}

// permitted is the entry of a list: a string, or a path that Zed has resolved as
// {"requested": …, "resolved": …}, of which the resolved one counts.
func permitted(element hujson.Value) (string, bool) {
	if object, is := element.Value.(*hujson.Object); is {
		element = valueOf(object, "requested")
		if resolved := valueOf(object, "resolved"); asks(&resolved) {
			element = resolved
		}
	}
	literal, is := element.Value.(hujson.Literal)
	if !is || literal.Kind() != '"' {
		return "", false
	}
	return literal.String(), true
}
