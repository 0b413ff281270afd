package compile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// asName is a name that a proof's patterns match.
func asName(proof string) string {
	return strings.NewReplacer("[0-9]", "1", "[0-9a-f]", "a", "*", "1").Replace(proof)
}

// theft is one try to have a variable open what is beside a place that a session
// may write.
type theft struct {
	files   map[string]string
	grants  string // keys of settings
	project string
	others  []string
	value   string // of the variable
}

// try compiles it for a toolchain.
func (x theft) try(t *testing.T, name, variable string) Result {
	t.Helper()
	in := Input{Host: settingstest.Host(), FS: resolvetest.InMemory(x.files), ProjectDir: x.project, Others: x.others}
	in.UserStates = []source.State{settingstest.State(t, userFile, fmt.Sprintf(
		`{"enabled": true, "toolchains": [%q]%s}`, name, x.grants))}
	in.Host.Env[variable], in.Host.Account = x.value, in.Host.Home
	return New(in, nil, nil).Compile(document.KindTool)
}

// noteOf is the path of a note that sessions have left about a directory.
func noteOf(in func(places.User) string, dir string) string {
	return filepath.Join(in(places.User{Home: "/home/u"}), places.Note(dir))
}

// belows are the names below the directory of a variable that its toolchain opens.
func belows(name, variable string) []string {
	t, _ := toolchain.Find(name)
	var list []string
	for _, p := range t.Places {
		if p.Variable == variable {
			list = append(list, p.Below)
		}
	}
	return list
}

// TestMoved_NothingThatASessionMadeOpensMore has a session make each proof of each
// variable where it may write, and name the directory above it.
func TestMoved_NothingThatASessionMadeOpensMore(t *testing.T) {
	t.Parallel()
	history := func(project string) string {
		return places.User{Home: "/home/u"}.HistoryOf(project) + "/"
	}
	// first is the outermost name of the proof in the directory dir.
	ways := map[string]func(x *theft, first string){
		"the project":           func(x *theft, first string) { x.project = first },
		"another project":       func(x *theft, first string) { x.others = []string{"/home/u/project", first} },
		"a project with a past": func(x *theft, first string) { x.files[history(first)] = "" },
		"a project of tools": func(x *theft, first string) {
			x.files[noteOf(places.User.Projects, first)] = ""
		},
		"a grant of the past": func(x *theft, first string) {
			x.files[noteOf(places.User.Written, first)] = ""
		},
		"a repository": func(x *theft, first string) { x.files[first+"/.git/HEAD"] = "" },
		"a writable grant": func(x *theft, first string) {
			x.grants = fmt.Sprintf(`, "additional_read_write_paths": [%q]`, first)
		},
		"a grant of the other kind": func(x *theft, first string) {
			x.grants = fmt.Sprintf(`, "terminal": {"additional_read_write_paths": [%q]}`, first)
		},
	}
	spellings := map[string]string{
		"plain": "/data/code", "slashes": "//data/code/", "dots": "/data/x/../code/.", "link": "/data/link",
	}
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		for _, proof := range p.Proof() {
			relative := asName(strings.TrimSuffix(proof, "/"))
			first, _, deep := strings.Cut(relative, "/")
			for way, arrange := range ways {
				at := "/data/code/" + first
				switch {
				case way == "a grant of the past" && slices.ContainsFunc(belows(name, variable),
					func(below string) bool {
						return below != "" && policy.Contains(at, filepath.Join("/data/code", below))
					}):
					continue // sessions had all that it opens
				case deep || strings.Contains(way, "grant"):
				case way == "the project" || way == "a repository":
					continue // sessions have it, or it is no repository in the directory
				default:
					at = "/data/code"
				}
				for spelling, value := range spellings {
					if spelling != "plain" && way != "the project" {
						continue
					}
					x := theft{project: "/home/u/project", value: value, files: map[string]string{
						"/home/u/project/": "", "/data/code/victim/key": "x", "/data/x/": "", "/data/link": "-> code",
					}}
					for _, below := range belows(name, variable) {
						x.files[filepath.Join("/data/code", below, "yours")] = "x"
					}
					x.files["/data/code/"+asName(proof)] = ""
					arrange(&x, at)
					label := fmt.Sprintf("%s with %s, %s, %s", variable, proof, way, spelling)
					for i, caches := range []string{"", `, "toolchain_caches": "shared"`} {
						if i > 0 && way != "the project" && way != "a writable grant" {
							continue
						}
						x := x
						x.grants += caches
						x.opensNothing(t, label+caches, at, name, variable)
					}
				}
			}
		}
	}
}

// opensNothing checks that a variable opens nothing but what sessions have at a
// path anyway, and that a note says so.
func (x theft) opensNothing(t *testing.T, label, at, name, variable string) {
	t.Helper()
	c := x.try(t, name, variable)
	has := accessOf(c, at) != "none" && (x.project == at || strings.Contains(x.grants, at))
	for _, path := range slices.Sorted(maps.Keys(x.files)) {
		path = filepath.Clean(path)
		if !policy.Contains("/data", path) || has && policy.Contains(at, path) {
			continue
		}
		if got := accessOf(c, path); got != "none" {
			t.Errorf("%s: %s: %s", label, path, got)
		}
	}
	for _, cache := range c.Policy.Caches {
		if policy.Contains("/data", cache.Path) && !has {
			t.Errorf("%s: a cache at %s", label, cache.Path)
		}
	}
	want := fmt.Sprintf("the variable %s is %q: not granted, because ", variable, x.value)
	got := said(c, userFile)
	if !strings.Contains(got, want+"it holds ") && !strings.Contains(got, want+"a session could have made ") {
		t.Errorf("%s: no note:\n%s", label, got)
	}
}

// TestMoved_NoPlaceHoldsWhatSessionsMayWrite has a true proof in a directory that
// sessions may write a part of.
func TestMoved_NoPlaceHoldsWhatSessionsMayWrite(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		below := filepath.Join("/data/own", p.Below, "mine")
		for why, arrange := range map[string]func(x *theft){
			`it holds the project "` + below + `"; set it to a directory without projects`: func(x *theft) {
				x.project = below
			},
			`it holds "` + below + `", which sessions may write; set it to another directory`: func(x *theft) {
				x.grants = fmt.Sprintf(`, "additional_read_write_paths": [%q]`, below)
			},
		} {
			x := theft{project: "/home/u/project", value: "/data/own", files: map[string]string{
				"/home/u/project/": "", below + "/x": "", filepath.Dir(below) + "/key": "",
				"/data/own/" + asName(p.Proof()[0]): "",
			}}
			arrange(&x)
			c := x.try(t, name, variable)
			if got := accessOf(c, filepath.Dir(below)+"/key"); got != "none" {
				t.Errorf("%s: %s: %s", variable, why, got)
			}
			if got := said(c, userFile); strings.Count(got, "not granted, because "+why) != 1 {
				t.Errorf("%s: no note %q:\n%s", variable, why, got)
			}
		}
	}
}

// TestMoved_NoVariableNamesAHome has a home directory hold each proof.
func TestMoved_NoVariableNamesAHome(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		if p.Below != "" {
			continue
		}
		for dir, home := range map[string]string{"/home/u": "/home/u", "/home": "/home/u"} {
			x := theft{project: "/srv/project", value: dir, files: map[string]string{
				"/srv/project/": "", home + "/letters/x": "", dir + "/" + asName(p.Proof()[0]): "",
			}}
			c := x.try(t, name, variable)
			if got := accessOf(c, home+"/letters/x"); got != "none" {
				t.Errorf("%s=%s: %s", variable, dir, got)
			}
			if got := said(c, userFile); !strings.Contains(got, "not granted, because ") {
				t.Errorf("%s=%s: no note:\n%s", variable, dir, got)
			}
		}
	}
}

// TestMoved_InTheProjectNothingIsNeeded has variables name places that sessions
// have anyway. What is hidden there stays hidden.
func TestMoved_InTheProjectNothingIsNeeded(t *testing.T) {
	t.Parallel()
	for key := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		for _, value := range []string{"/home/u/project", "/home/u/project/.cache", "/home/u/project/secret"} {
			x := theft{project: "/home/u/project", value: value, files: map[string]string{
				"/home/u/project/.cache/": "", "/home/u/project/secret/x": "",
			}, grants: `, "hidden_paths": ["/home/u/project/secret"]`}
			c := x.try(t, name, variable)
			if got := accessOf(c, value+"/x"); got != "read,write,execute" {
				t.Errorf("%s=%s: %s", variable, value, got)
			}
			if got := said(c, userFile); strings.Contains(got, variable) {
				t.Errorf("%s=%s:\n%s", variable, value, got)
			}
			if slices.ContainsFunc(c.Policy.Caches, func(cache policy.Cache) bool {
				return policy.Contains("/home/u/project", cache.Path)
			}) {
				t.Errorf("%s=%s: %+v", variable, value, c.Policy.Caches)
			}
			if _, hidden := c.Policy.HiddenAt("/home/u/project/secret/x"); !hidden {
				t.Errorf("%s=%s: the hidden path is open", variable, value)
			}
		}
	}
}

// TestMoved_InAGrantNothingIsOpened has variables name what is hidden in a grant,
// and may not have been there when a session could make it.
func TestMoved_InAGrantNothingIsOpened(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		path := filepath.Join("/data/own/secret", p.Below, "x")
		x := theft{project: "/home/u/project", value: "/data/own/secret", files: map[string]string{
			"/home/u/project/": "", "/data/own/secret/" + asName(p.Proof()[0]): "", path: "",
		}, grants: `, "additional_read_write_paths": ["/data/own"], "hidden_paths": ["/data/own/secret"]`}
		c := x.try(t, name, variable)
		if _, hidden := c.Policy.HiddenAt(path); !hidden {
			t.Errorf("%s: the hidden path is open", variable)
		}
		if got := said(c, userFile); strings.Contains(got, variable) {
			t.Errorf("%s:\n%s", variable, got)
		}
	}
}

// TestMoved_NothingOfTheSidecarsOwn names directories of the sidecar's, which
// sessions write in part, also where a variable that names them was changed.
func TestMoved_NothingOfTheSidecarsOwn(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		for _, dir := range []string{
			"/home/u/.cache/sandbox-sidecar/overlays/1/upper", "/run/user/1000/sandbox-sidecar/x",
			"/tmp/sandbox-sidecar-0123456789abcdef/files", "/elsewhere/sandbox-sidecar/overlays/1/upper/g",
		} {
			path := filepath.Join(dir, p.Below, "x")
			x := theft{project: "/home/u/project", value: dir, files: map[string]string{
				"/home/u/project/": "", dir + "/" + asName(p.Proof()[0]): "", path: "",
			}}
			c := x.try(t, name, variable)
			granted := slices.ContainsFunc(c.Policy.Rules, func(r policy.Rule) bool {
				return policy.Contains(dir, r.Path) // beside /tmp, where each project has another
			})
			if got := said(c, userFile); granted || !strings.Contains(got, "not granted, because ") {
				t.Errorf("%s=%s: granted: %t:\n%s", variable, dir, granted, got)
			}
		}
	}
}

// TestMoved_ALinkOfASessionLeadsNowhere has a session put a symlink below the
// directory that a variable names. A public file is no exception.
func TestMoved_ALinkOfASessionLeadsNowhere(t *testing.T) {
	t.Parallel()
	linked := movable("linux")
	for _, set := range toolchain.All {
		for _, p := range set.Places {
			if p.Variable != "" && p.Below != "" {
				linked[set.Name+" "+p.Variable+" "+p.Below] = p
			}
		}
	}
	opened := 0
	for key, p := range linked {
		if p.Below == "" || p.Platform == "darwin" {
			continue
		}
		words := strings.Fields(key)
		for others, opens := range map[string]bool{"/data/p1": false, "/data/p2": true} {
			x := theft{project: "/home/u/project", value: "/data/p1/g", others: []string{others}}
			x.files = map[string]string{"/home/u/project/": "", "/data/p1/g/" + p.Below: "-> /data/victim"}
			victim := "/data/victim"
			if !p.Public {
				victim += "/x"
				x.files["/data/p1/g/"+asName(p.Proof()[0])] = ""
			}
			if strings.Contains(p.Below, "*") || strings.HasPrefix(asName(strings.Join(p.Proof(), " ")), p.Below) {
				continue // the link itself is the proof's
			}
			x.files[victim] = "use-agent\n"
			got := accessOf(x.try(t, words[0], words[1]), victim)
			if got != "none" && !opens {
				t.Errorf("%s: %s", key, got)
			}
			if got != "none" {
				opened++
			}
		}
	}
	if opened == 0 {
		t.Error("control: no link of the user's is followed")
	}
}

// TestMoved_NoAgentHasTheStateOfAnother names the usual directory of another
// agent, which holds a proof.
func TestMoved_NoAgentHasTheStateOfAnother(t *testing.T) {
	t.Parallel()
	tried := 0
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		set, _ := toolchain.Find(name)
		for _, other := range toolchain.All {
			if !set.Agent || !other.Agent || other.Name == name {
				continue
			}
			for _, usual := range other.Places {
				dir, in := strings.CutPrefix(usual.At, "~/")
				if !in || !usual.Access.Has(policy.Write) || strings.Contains(dir, "*") {
					continue
				}
				dir = "/home/u/" + dir
				x := theft{project: "/home/u/project", value: dir, files: map[string]string{
					"/home/u/project/": "", dir + "/" + asName(p.Proof()[0]): "", dir + "/state": "x",
				}}
				c := x.try(t, name, variable)
				if strings.Contains(accessOf(c, dir+"/state"), "write") {
					t.Errorf("%s=%s: %s", variable, dir, accessOf(c, dir+"/state"))
				}
				want := "because the state of " + other.Name + " is in "
				if got := said(c, userFile); !strings.Contains(got, want) {
					t.Errorf("%s=%s: no note:\n%s", variable, dir, got)
				}
				tried++
			}
		}
	}
	if tried < 10 {
		t.Errorf("%d pairs", tried)
	}
}

// TestMoved_AgentsThatAreAllMovedAtOnce sets the variables of all agents. Each has
// its own directory, which holds its proof or nothing, or all have the same.
func TestMoved_AgentsThatAreAllMovedAtOnce(t *testing.T) {
	t.Parallel()
	compile := func(value func(name, variable string) string, files map[string]string, name string) Result {
		in := Input{Host: settingstest.Host(), FS: resolvetest.InMemory(files), ProjectDir: "/home/u/project"}
		in.UserStates = []source.State{settingstest.State(t, userFile,
			fmt.Sprintf(`{"enabled": true, "toolchains": [%q]}`, name))}
		in.Host.Account = in.Host.Home
		for key := range movable("linux") {
			agent, variable, _ := strings.Cut(key, " ")
			if set, _ := toolchain.Find(agent); set.Agent {
				in.Host.Env[variable] = value(agent, variable)
			}
		}
		return New(in, nil, nil).Compile(document.KindTool)
	}
	own := func(_, variable string) string { return "/moved/" + variable }
	proved, empty := map[string]string{"/home/u/project/": ""}, map[string]string{"/home/u/project/": ""}
	places := map[string]toolchain.Place{}
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		if set, _ := toolchain.Find(name); set.Agent && p.Access.Has(policy.Write) {
			places[key] = p
			proved[own(name, variable)+"/"+asName(p.Proof()[0])] = ""
			empty[own(name, variable)+"/"] = ""
		}
	}
	if len(places) < 2 {
		t.Fatal("control: fewer than two agents can be moved")
	}
	for key, p := range places {
		name, variable, _ := strings.Cut(key, " ")
		at := filepath.Join(own(name, variable), p.Below, "state")
		if c := compile(own, proved, name); !strings.Contains(accessOf(c, at), "write") {
			t.Errorf("%s, proved: %s: %s", key, accessOf(c, at), said(c, userFile))
		}
		if c := compile(own, empty, name); strings.Contains(accessOf(c, at), "write") {
			t.Errorf("%s, empty: %s", key, accessOf(c, at))
		}
		same := func(string, string) string { return own(name, variable) }
		compile(same, proved, name) // comes to an end
	}
}

// TestMoved_WhatOtherSessionsHaveCounts has a cache of a toolchain that only other
// sessions have: those of the other kind, or those without the project's file.
func TestMoved_WhatOtherSessionsHaveCounts(t *testing.T) {
	t.Parallel()
	for why, x := range map[string]theft{
		"the other kind": {
			grants: `, "tool": {"toolchains": ["python"]}, "terminal": {"toolchains": ["go"]}`,
		},
		"another project": {grants: `, "toolchains": ["python", "go"]`, files: map[string]string{
			"/home/u/project/.zed/settings.json": `{"toolchains": ["python"]}`,
		}},
	} {
		files := map[string]string{
			"/home/u/project/": "", "/home/u/go/pyvenv.cfg": "", "/home/u/go/pkg/mod/x": "", "/home/u/go/y": "",
		}
		maps.Copy(files, x.files)
		in := Input{Host: settingstest.Host(), FS: resolvetest.InMemory(files), ProjectDir: "/home/u/project"}
		in.UserStates = []source.State{settingstest.State(t, userFile, fmt.Sprintf(`{"enabled": true%s}`, x.grants))}
		if text := x.files["/home/u/project/.zed/settings.json"]; text != "" {
			state := settingstest.State(t, "/home/u/project/.zed/settings.json", text)
			in.ProjectState = &state
		}
		in.Host.Env["VIRTUAL_ENV"] = "/home/u/go"
		c := New(in, nil, nil).Compile(document.KindTool)
		want := `it holds "/home/u/go/pkg", which sessions may write`
		if got := said(c, userFile); accessOf(c, "/home/u/go/y") != "none" || !strings.Contains(got, want) {
			t.Errorf("%s: %s:\n%s", why, accessOf(c, "/home/u/go/y"), got)
		}
	}
}

// TestMoved_WhatIsTheUsersStaysOpen are the controls: places beside projects and
// grants, and in a grant of the user's.
func TestMoved_WhatIsTheUsersStaysOpen(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		proof := asName(p.Proof()[0])
		for label, x := range map[string]theft{
			"beside": {
				project: "/data/code/project", value: "/data/code/own", others: []string{"/data/code/other"},
			},
			"in a grant": {
				project: "/data/code/project", value: "/data/code/own",
				grants: `, "additional_read_write_paths": ["/data/code/own"]`,
			},
			"its own repository": {project: "/data/code/project", value: "/data/code/own", files: map[string]string{
				"/data/code/own/.git/HEAD": "",
			}},
		} {
			x.files = maps.Clone(x.files)
			if x.files == nil {
				x.files = map[string]string{}
			}
			x.files[x.project+"/"], x.files["/data/code/own/"+proof] = "", ""
			x.files[filepath.Join("/data/code/own", p.Below, "x")] = ""
			c := x.try(t, name, variable)
			got, note := accessOf(c, filepath.Join("/data/code/own", p.Below, "x")), said(c, userFile)
			if got == "none" || strings.Contains(note, "not granted") {
				t.Errorf("%s: %s: %s\n%s", variable, label, got, note)
			}
		}
	}
}

// TestMoved_CaseDoesNotMatter has a file system that knows no case.
func TestMoved_CaseDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ dir, path string }{{"/data/Code", "/data/code/log"}, {"/DATA/code", "/data/CODE"}} {
		if !holds(row.dir, row.path) || holds(row.path+"/x", row.dir) {
			t.Errorf("%+v", row)
		}
	}
}
