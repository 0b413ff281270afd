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
	in.Host.Env[variable] = x.value
	return New(in, nil, nil).Compile(document.KindTool)
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
		"a repository":          func(x *theft, first string) { x.files[first+"/.git/HEAD"] = "" },
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
