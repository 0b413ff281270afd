//go:build linux

package denials

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// kind is one kind of access: how to try it, and the expected report.
type kind struct {
	access, target string
	argv           []string
	// process is the name of the process that tries; "": the victim.
	process string
	// block holds settings in addition to those of every test.
	block harness.Sandbox
	// setting and value are the expected suggestion; "": none, and hint is part of
	// what is said instead.
	setting, value, hint string
	// opens are the targets, by access, that the suggestion opens in addition
	// to the target itself.
	opens map[string][]string
	// again restores what a first success uses up.
	again func()
	// needs is a protection without which nothing is refused.
	needs string
}

func kinds(s *scene) map[string]kind {
	t := s.T
	harness.Write(t, s.OutsidePath("file"), "content\n")
	harness.Write(t, s.OutsidePath("cut"), "content\n")
	harness.Write(t, s.OutsidePath("full/old"), "content\n")
	harness.Write(t, s.OutsidePath("from/old"), "content\n")
	harness.Victim(t, "tests/victim", s.OutsidePath("program"))
	if err := os.Mkdir(s.OutsidePath("empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.OutsidePath("file"), filepath.Join(s.Project, "link")); err != nil {
		t.Fatal(err)
	}
	short := harness.ShortDir(t)
	listen(t, filepath.Join(short, "s"))
	address := ownAddress(t)
	// The address is one of the machine's own, so it stands for an internet.
	offline := harness.Sandbox{"allow_network": false, "localhost": "all"}
	listener, err := net.Listen("tcp", address+":0")
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	server := listener.Addr().String()
	const rw = "additional_read_write_paths"
	writes := func(list ...string) map[string][]string {
		return map[string][]string{"read": list, "write": list, "execute": list}
	}
	return map[string]kind{
		"read": {
			access: "read", target: s.OutsidePath("file"), argv: []string{"cat", s.OutsidePath("file")}, process: "cat",
			setting: "additional_read_only_paths", value: s.OutsidePath("file"),
		},
		"list": {
			access: "read", target: s.OutsidePath("full"), argv: []string{"ls", s.OutsidePath("full")}, process: "ls",
			block: harness.Sandbox{"on_denied": "ask"}, setting: "additional_read_only_paths",
			value: s.OutsidePath("full"), opens: map[string][]string{"read": {s.OutsidePath("full/old")}},
		},
		"write": {
			access: "write", target: s.OutsidePath("file"),
			argv:    []string{s.Victim, "open-often", s.OutsidePath("file"), "1"},
			setting: rw, value: s.OutsidePath("file"), opens: map[string][]string{
				"read":    {s.OutsidePath("file")},
				"execute": {s.OutsidePath("file")},
			},
		},
		"write through a symlink": {
			access: "write", target: s.OutsidePath("file"), argv: []string{
				s.Victim, "open-often",
				filepath.Join(s.Project, "link"),
				"1",
			},
			setting: rw, value: s.OutsidePath("file"), opens: map[string][]string{
				"read":    {s.OutsidePath("file")},
				"execute": {s.OutsidePath("file")},
			},
		},
		"cut off": {
			access: "write", target: s.OutsidePath("cut"), argv: []string{
				"truncate", "-s", "1",
				s.OutsidePath("cut"),
			}, process: "truncate",
			setting: rw, value: s.OutsidePath("cut"), opens: map[string][]string{
				"read":    {s.OutsidePath("cut")},
				"execute": {s.OutsidePath("cut")},
			},
		},
		"create": {
			access: "create", target: s.OutsidePath("empty/new"), argv: []string{"touch", s.OutsidePath("empty/new")},
			process: "touch",
			setting: rw, value: s.OutsidePath("empty"),
			opens: writes(s.OutsidePath("empty"), s.OutsidePath("empty/new")),
			again: func() { os.Remove(s.OutsidePath("empty/new")) },
		},
		"make a directory": {
			access: "create", target: s.OutsidePath("empty/dir"), argv: []string{"mkdir", s.OutsidePath("empty/dir")},
			process: "mkdir",
			setting: rw, value: s.OutsidePath("empty"),
			opens: writes(s.OutsidePath("empty"), s.OutsidePath("empty/dir"), s.OutsidePath("empty/new")),
			again: func() { os.Remove(s.OutsidePath("empty/dir")) },
		},
		"remove": {
			access: "remove", target: s.OutsidePath("full/old"), argv: []string{"rm", s.OutsidePath("full/old")},
			process: "rm",
			setting: rw, value: s.OutsidePath("full"), opens: writes(s.OutsidePath("full"), s.OutsidePath("full/old")),
			again: func() { harness.Write(t, s.OutsidePath("full/old"), "content\n") },
		},
		"rename away": {
			access: "remove", target: s.OutsidePath("from/old"), argv: []string{
				"mv", s.OutsidePath("from/old"),
				s.OutsidePath("from/new"),
			}, process: "mv",
			setting: rw, value: s.OutsidePath("from"), opens: writes(s.OutsidePath("from"), s.OutsidePath("from/old"),
				s.OutsidePath("from/new")),
			again: func() { os.Rename(s.OutsidePath("from/new"), s.OutsidePath("from/old")) },
		},
		"execute": {
			access: "execute", target: s.OutsidePath("program"), argv: []string{"sh", "-c", s.OutsidePath("program") +
				" privileges"}, process: "sh",
			setting: "additional_executable_paths", value: s.OutsidePath(
				"program"), opens: map[string][]string{"read": {s.OutsidePath("program")}},
			needs: "execute",
		},
		"connect to a socket": {
			access: "connect_unix", target: filepath.Join(short, "s"), argv: []string{
				s.Victim, "connect",
				filepath.Join(short, "s"),
			},
			setting: "allowed_unix_sockets", value: filepath.Join(short, "s"), needs: "unix_sockets",
		},
		"connect": {
			access: "connect", target: address + ":9", argv: []string{s.Victim, "connect-to", address + ":9"},
			block: offline, hint: "by TCP alone",
		},
		"connect by TCP": {
			access: "connect", target: server,
			argv:    []string{"bash", "-c", "exec 3<>/dev/tcp/" + strings.Replace(server, ":", "/", 1)},
			process: "bash", block: offline, setting: "allowed_hosts", value: server, needs: "network_hosts",
		},
		"send": {
			access: "connect", target: address + ":9", argv: []string{s.Victim, "send-to", address + ":9"},
			block: offline, hint: "by TCP alone",
		},
		"bind": {
			access: "bind", target: address + ":0", argv: []string{s.Victim, "bind-to", address + ":0"},
			block: offline, hint: "that would open the whole network",
		},
	}
}

// Each kind of access works without a sandbox, and is refused and reported in
// one. With the suggested setting it works, and only what the setting names has
// become open. Kinds under the same settings share a world, and the sidecars of
// what comes before the suggestion.
func TestEachKindIsReportedAndItsSuggestionAllowsIt(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	groups := map[string][]string{}
	for name, k := range kinds(newScene(t)) {
		group := "usual"
		if len(k.block) > 0 {
			group = strings.Join(slices.Sorted(maps.Keys(k.block)), ", ")
		}
		groups[group] = append(groups[group], name)
	}
	for group, names := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			all := kinds(s)
			maps.DeleteFunc(all, func(name string, _ kind) bool { return !slices.Contains(names, name) })
			tried, open := s.tryKinds(all)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				t.Run(name, func(t *testing.T) {
					k := all[name]
					if lacking, why := k.lacking(t); lacking != "" {
						harness.Skip(t, lacking, why)
					}
					s.in(t).mustSuggest(k, tried[name], open)
				})
			}
		})
	}
}

// lacking is a feature without which nothing is refused, and which this machine
// lacks; "" if it lacks none.
func (k kind) lacking(t testing.TB) (feature, why string) {
	t.Helper()
	switch {
	case k.needs != "" && !harness.Enforces(t, k.needs):
		return k.needs, "nothing would be refused"
	case k.block["allow_network"] == false && !harness.Namespaces(t):
		return "namespaces", "the address is not known: no socket is made, which another test is about"
	}
	return "", ""
}

// attempt is what came of a kind of access.
type attempt struct {
	control, status int // the status without a sandbox, and in one
	printed         string
	denials         []protocol.DeniedParams
}

// tryKinds tries kinds of access under the same settings: without a sandbox, and in
// one. open are those probes of all kinds that the settings allow.
func (s *scene) tryKinds(all map[string]kind) (tried map[string]attempt, open map[string]bool) {
	s.T.Helper()
	tried, probed := map[string]attempt{}, map[string][]string{}
	var names []string
	var block harness.Sandbox
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if lacking, _ := all[name].lacking(s.T); lacking != "" {
			continue
		}
		names, block = append(names, name), all[name].block
		for access, targets := range probes(s, all[name]) {
			probed[access] = append(probed[access], targets...)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	for access, targets := range probed {
		slices.Sort(targets)
		probed[access] = slices.Compact(targets)
	}
	without := s.start(harness.Off(), nil)
	for _, name := range names {
		_, status, _ := without.tool(all[name].argv...)
		tried[name] = attempt{control: status}
		if again := all[name].again; again != nil {
			again()
		}
	}
	before := s.start(harness.Settings(block), nil)
	observed(s.T, before)
	for _, name := range names {
		session, status, denials := before.tool(all[name].argv...)
		tried[name] = attempt{tried[name].control, status, session.Output(), denials}
	}
	return tried, before.opened(s, probed)
}

// mustSuggest checks the report about a kind of access, and what its suggestion
// opens besides the probes that were open before.
func (s *scene) mustSuggest(k kind, a attempt, open map[string]bool) {
	t := s.T
	t.Helper()
	if a.control != 0 {
		t.Fatalf("control: it fails without a sandbox: %d", a.control)
	}
	if a.status == 0 {
		t.Fatalf("it is not refused: %s", a.printed)
	}
	denial, times := find(a.denials, k.access, k.target)
	if times != 1 || denial.Count < 1 {
		t.Fatalf("reported %d times: %+v\n%s", times, a.denials, a.printed)
	}
	process := k.process
	if process == "" {
		process = "victim"
	}
	if denial.Process == nil || denial.Process.Name != process || denial.Process.PID <= 1 {
		t.Errorf("process is %+v, want %s", denial.Process, process)
	}
	if k.setting == "" {
		if denial.Suggestion != nil || !strings.Contains(denial.Hint, k.hint) {
			t.Errorf("%+v, %q", denial.Suggestion, denial.Hint)
		}
		return
	}
	if denial.Suggestion == nil || denial.Suggestion.Setting != k.setting ||
		plain(denial.Suggestion.Value) != k.value {
		t.Fatalf("suggestion is %+v, want %s = %s", denial.Suggestion, k.setting, k.value)
	}
	after := s.start(harness.Settings(paste(t, k.block, denial.Suggestion)), nil)
	if session, status, denials := after.tool(k.argv...); status != 0 || len(denials) > 0 {
		t.Errorf("with the suggestion: status %d, denials %+v\n%s", status, denials, session.Output())
	}
	if k.again != nil {
		k.again()
	}
	probes, want := probes(s, k), map[string]bool{}
	for access, list := range probes {
		for _, target := range list {
			if key := access + " " + target; open[key] {
				want[key] = true
			}
		}
	}
	for access, list := range k.allowed() {
		for _, target := range list {
			want[access+" "+target] = true
		}
	}
	if got := after.opened(s, probes); !maps.Equal(got, want) {
		t.Errorf("open after: %v\nwant: %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// allowed is what the suggestion opens, as policy/explain reports it.
func (k kind) allowed() map[string][]string {
	list := map[string][]string{}
	for access, targets := range k.opens {
		list[access] = append(list[access], targets...)
	}
	switch k.access {
	case "create", "remove":
	default:
		list[k.access] = append(list[k.access], k.target)
	}
	return list
}

// probes are the targets that policy/explain is asked about, before and after.
func probes(s *scene, k kind) map[string][]string {
	files := []string{
		s.Outside, s.OutsidePath("file"), s.OutsidePath(
			"cut"), s.OutsidePath("program"), s.OutsidePath("full"), s.OutsidePath("full/old"), s.OutsidePath("empty"),
		s.OutsidePath("from"), s.OutsidePath("from/old"), s.Home, filepath.Join(s.Home, ".bashrc"), "/etc/passwd",
		"/var/tmp", "/run",
	}
	list := map[string][]string{"read": files, "write": files, "execute": files, "connect_unix": {"/run/docker.sock"}}
	for access, targets := range k.allowed() {
		list[access] = append(list[access], targets...)
	}
	return list
}

// plain is a value without the quotes of a JSON string.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// A session without network and without namespaces gets no socket. The denial
// is reported once, with what would allow it.
func TestARefusedSocketIsReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	offline := harness.Settings(harness.Sandbox{"allow_network": false})
	if _, status, _ := s.start(harness.Settings(nil), nil).tool(s.Victim, "socket", "2", "1", "0"); status != 0 {
		t.Fatalf("control: status %d", status)
	}
	e := s.start(offline, harness.WithoutNamespaces(t))
	observed(t, e)
	session, status, denials := e.tool(s.Victim, "socket", "2", "1", "0")
	denial, times := find(denials, "connect", "inet")
	if status != 1 || !strings.Contains(session.Output(), "EACCES") || times != 1 || denial.Suggestion != nil ||
		!strings.Contains(denial.Hint, `"allowed_hosts" opens single hosts`) {
		t.Errorf("status %d, denials %+v\n%s", status, denials, session.Output())
	}
}

// A denial that no setting can lift has no suggestion. For a path that holds
// credentials there is only a text.
func TestSomeDenialsHaveOnlyAText(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	s := newScene(t)
	key := filepath.Join(s.Home, ".ssh", "id_ed25519")
	harness.Write(t, key, "key")
	pid := s.target()
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	for _, test := range []struct {
		access, target, hint string
		argv                 []string
	}{
		{"read", key, "SSH keys", []string{"cat", key}},
		{"write", key, "SSH keys", []string{s.Victim, "open-often", key, "1"}},
		{"create", filepath.Join(s.Home, ".ssh", "new"), "SSH keys", []string{
			"touch", filepath.Join(s.Home, ".ssh", "new"),
		}},
		{"signal", pid, "no setting", []string{s.Victim, "terminate", pid}},
		{"signal", pid, "no setting", []string{s.Victim, "kill-pidfd", pid}},
	} {
		session, status, denials := e.tool(test.argv...)
		denial, times := find(denials, test.access, test.target)
		if status == 0 || times != 1 || denial.Suggestion != nil || !strings.Contains(denial.Hint, test.hint) {
			t.Errorf("%s %s: status %d, denials %+v\n%s", test.access, test.target, status, denials, session.Output())
		}
	}
}

// For a toolchain's files the suggestion is the toolchain's name.
func TestAToolchainIsSuggestedByItsName(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	program := filepath.Join(s.Home, ".cargo", "bin", "tool")
	harness.Victim(t, "tests/victim", makeDirs(t, program))
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	_, status, denials := e.tool("sh", "-c", program+" privileges")
	denial, times := find(denials, "execute", program)
	if status == 0 || times != 1 || denial.Suggestion == nil || denial.Suggestion.Setting != "toolchains" ||
		plain(denial.Suggestion.Value) != "rust" {
		t.Fatalf("status %d, denials %+v", status, denials)
	}
	after := s.start(harness.Settings(paste(t, nil, denial.Suggestion)), nil)
	if session, status, _ := after.tool("sh", "-c", program+" privileges"); status != 0 {
		t.Errorf("with the suggestion: status %d\n%s", status, session.Output())
	}
}

func makeDirs(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// For a protected path no setting is suggested: it would give the protection up.
func TestForAProtectedPathNothingIsSuggested(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	hook := filepath.Join(s.Project, ".git", "hooks", "pre-commit")
	harness.Write(t, hook, "#!/bin/sh\n")
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	_, status, denials := e.tool(s.Victim, "open-often", hook, "1")
	denial, times := find(denials, "write", hook)
	if status == 0 || times != 1 || denial.Suggestion != nil || !strings.Contains(denial.Hint, "it is protected") {
		t.Fatalf("status %d, denials %+v", status, denials)
	}
}
