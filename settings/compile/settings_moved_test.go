package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Variables that name files which tools read, run or fill: whether sessions get
// them, what of that they may use, and what is said otherwise.
func TestVariables_ThatNameFiles(t *testing.T) {
	t.Parallel()
	const (
		registry = "registry=https://npm.corp.example/\n"
		token    = "//npm.corp.example/:_authToken=npm_abcdef\n"
		aSet     = `so npm asks the public registry; add "node" to "toolchains"`
		readOnly = `sessions may not read the file, so npm asks the public registry; ` +
			`add it to "additional_read_only_paths"`
		elsewhere = "sessions read it only at its usual place, so npm asks the public registry; keep it there"
	)
	for name, test := range map[string]struct {
		set, variable, value string
		file, text           string // what the variable leads to, or a proof
		path, access         string // "": as file
		part                 string // of the file, as sessions read it
		passes               bool
		said                 string // about the variable; "": nothing
	}{
		"npm": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/npmrc", file: "/home/u/npm/npmrc",
			text: registry, access: "read", passes: true,
		},
		"npm, in small letters": {
			set: "node", variable: "npm_config_userconfig", value: "/home/u/npm/npmrc", file: "/home/u/npm/npmrc",
			text: registry + "prefix=${HOME}/.npm-global\n", access: "read", passes: true,
		},
		"npm of the machine": {
			set: "node", variable: "NPM_CONFIG_GLOBALCONFIG", value: "/home/u/etc/npmrc", file: "/home/u/etc/npmrc",
			text: registry, access: "read", passes: true,
		},
		"npm with a token": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/npmrc", file: "/home/u/npm/npmrc",
			text: registry + token, access: "none", part: registry, passes: true,
		},
		"npm without the set": {
			set: "go", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/npmrc", file: "/home/u/npm/npmrc",
			text: registry, access: "read", said: aSet,
		},
		"npm, in ~/.config": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/.config/npm/npmrc",
			file: "/home/u/.config/npm/npmrc", text: registry, access: "read", passes: true,
		},
		"npm by another name": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/mine", file: "/home/u/npm/mine",
			text: registry, access: "none", passes: true, said: elsewhere,
		},
		"npm by another name, with a token": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/mine", file: "/home/u/npm/mine",
			text: registry + token, access: "none", passes: true, said: elsewhere,
		},
		"npm out of the home directory": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/data/npmrc", file: "/data/npmrc",
			text: registry, access: "none", passes: true, said: readOnly,
		},
		"npm out of the home directory, with a token": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/data/npmrc", file: "/data/npmrc",
			text: registry + token, access: "none", passes: true, said: elsewhere,
		},
		"npm of the project": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/project/.npmrc",
			file: "/home/u/project/.npmrc", text: registry + token, access: "read,write,execute", passes: true,
		},
		"npm, not there": {
			set: "node", variable: "NPM_CONFIG_USERCONFIG", value: "/home/u/npm/npmrc", file: "/home/u/npm/",
			path: "/home/u/npm/npmrc", access: "none", passes: true,
		},
		"npm's cache": {
			set: "node", variable: "NPM_CONFIG_CACHE", value: "/data/npm", file: "/data/npm/_cacache/index-v5/0a/x",
			path: "/data/npm/x", access: "read,write,execute", passes: true,
		},
		"npm's programs": {
			set: "node", variable: "npm_config_prefix", value: "/data/npm",
			file: "/data/npm/lib/node_modules/npm/package.json", path: "/data/npm/lib/x", access: "read,execute",
			passes: true,
		},
		"pip": {
			set: "python", variable: "PIP_CONFIG_FILE", value: "/home/u/etc/pip.conf", file: "/home/u/etc/pip.conf",
			text: "[global]\nindex-url = https://u:p@pypi.corp.example/simple\n", access: "none",
			part: "[global]\nindex-url = https://pypi.corp.example/simple\n", passes: true,
		},
		"uv": {
			set: "python", variable: "UV_CONFIG_FILE", value: "/home/u/etc/uv.toml", file: "/home/u/etc/uv.toml",
			text: "native-tls = true\n", access: "read", passes: true,
		},
		"conda": {
			set: "python", variable: "CONDARC", value: "/home/u/etc/condarc", file: "/home/u/etc/condarc",
			text: "channels:\n  - conda-forge\n", access: "read", passes: true,
		},
		"conda's environments": {
			set: "python", variable: "CONDA_ENVS_PATH", value: "/data/none:/data/envs",
			file: "/data/envs/.conda_envs_dir_test", access: "read,execute", passes: true,
		},
		"pip, by XDG_CONFIG_HOME": {
			set: "go", variable: "XDG_CONFIG_HOME", value: "/home/u/cfg", file: "/home/u/cfg/pip/pip.conf",
			text: "[global]\nindex-url = https://pypi.corp.example/simple\n", access: "read", passes: true,
		},
		"go": {
			set: "go", variable: "GOENV", value: "/home/u/etc/go/env", file: "/home/u/etc/go/env",
			text: "GOPROXY=https://go.corp.example\n", access: "read", passes: true,
		},
		"go, any file called env": {
			set: "go", variable: "GOENV", value: "/home/u/etc/env", file: "/home/u/etc/env",
			text: "GOPROXY=https://go.corp.example\n", access: "none", passes: true,
			said: "sessions read it only at its usual place, so go asks the public proxy; keep it there",
		},
		"Gradle": {
			set: "java", variable: "GRADLE_USER_HOME", value: "/home/u/gradle",
			file: "/home/u/gradle/gradle.properties", text: "org.gradle.caching=true\n", access: "read", passes: true,
		},
		"Maven's settings": {
			set: "java", variable: "MAVEN_ARGS", value: "-s /home/u/maven/settings.xml",
			file: "/home/u/maven/settings.xml", text: "<settings/>\n", access: "read",
			said: `so Maven asks the public repository; add "+MAVEN_ARGS" to "allowed_env_vars"`,
		},
		"Maven's repository": { // sessions have ~/.m2/repository
			set: "java", variable: "MAVEN_OPTS", value: "-Dmaven.repo.local=/data/repository",
			file: "/data/repository/x", access: "none",
		},
		"rustc's wrapper": { // cargo builds without one
			set: "rust", variable: "RUSTC_WRAPPER", value: "/data/sccache", file: "/data/sccache", access: "none",
		},
		"cargo's target": { // the denial names the setting
			set: "rust", variable: "CARGO_TARGET_DIR", value: "/data/target", file: "/data/target/x", access: "none",
			passes: true,
		},
		"caches": { // sessions have ~/.cache/go-build
			set: "go", variable: "XDG_CACHE_HOME", value: "/data/cache", file: "/data/cache/go-build/x", access: "none",
		},
		"state": {
			set: "go", variable: "XDG_STATE_HOME", value: "/data/state", file: "/data/state/x", access: "none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshotOf(t, resolvetest.InMemory(map[string]string{"/home/u/project/": "", test.file: test.text}),
				`{"enabled": true, "toolchains": ["`+test.set+`"]}`, "")
			s.Host.Env[test.variable] = test.value
			c := s.Compile(document.KindTool)
			path := test.path
			if path == "" {
				path = test.file
			}
			if got := accessOf(c, path); got != test.access {
				t.Errorf("%s: granted %s, want %s", path, got, test.access)
			}
			part := ""
			for _, one := range c.Policy.Copies {
				if one.Path == path {
					part = one.Text
				}
			}
			if part != test.part {
				t.Errorf("sessions read %q, want %q", part, test.part)
			}
			if got := c.Policy.Environment.Allows(test.variable); got != test.passes {
				t.Errorf("%s passes: %t, want %t", test.variable, got, test.passes)
			}
			got := said(c, test.file) + said(c, userFile)
			names := strings.Contains(got, test.variable+" names ")
			if !strings.Contains(got, test.said) || (test.said != "") != names {
				t.Errorf("it is said %q, want %q", got, test.said)
			}
		})
	}
}

// Commands and links print warnings at settings files alone. So a program whose set
// is chosen has one there. Others go without: people keep settings of many.
func TestVariables_WarnOfProgramsThatAreChosen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set, variable, value, file string
		severity                   document.Severity
	}{
		{"node", "NPM_CONFIG_USERCONFIG", "/home/u/npm/mine", userFile, document.SeverityWarning},
		{"java", "MAVEN_ARGS", "-s /home/u/npm/mine", userFile, document.SeverityWarning},
		{"go", "NPM_CONFIG_USERCONFIG", "/home/u/npm/mine", "/home/u/npm/mine", document.SeverityInfo},
		{"go", "WGETRC", "/home/u/npm/mine", "/home/u/npm/mine", document.SeverityInfo},
	} {
		s := snapshotOf(t, resolvetest.InMemory(map[string]string{"/home/u/project/": "", "/home/u/npm/mine": ""}),
			`{"enabled": true, "toolchains": ["`+test.set+`"]}`, "")
		s.Host.Env[test.variable] = test.value
		var found []document.FileDiagnostic
		for _, d := range s.Compile(document.KindTool).Diagnostics {
			if strings.HasPrefix(d.Message, test.variable+" names ") {
				found = append(found, d)
			}
		}
		if len(found) != 1 || found[0].File != test.file || found[0].Severity != test.severity {
			t.Errorf("%s with %s: %+v", test.variable, test.set, found)
		}
	}
}

// A line of variables that a session has written names what another session, or
// the user, has elsewhere. Nothing of it is read, whatever it is called.
func TestVariables_OpenNoFileOfAnotherProject(t *testing.T) {
	t.Parallel()
	const text = "registry=https://npm.corp.example/\n"
	for name, test := range map[string]struct {
		value string
		files map[string]string
		opens bool
	}{
		"a repository's":    {value: "/home/u/work/.npmrc", files: map[string]string{"/home/u/work/.git/HEAD": ""}},
		"another project's": {value: "/home/u/other/.npmrc"},
		"by a link of another project's": {
			value: "/home/u/other/.npmrc", files: map[string]string{
				"/home/u/other/.npmrc": "-> /home/u/notes/.npmrc", "/home/u/notes/.npmrc": text,
			},
		},
		"notes": {value: "/home/u/notes/plan", files: map[string]string{"/home/u/notes/plan": "buy milk\n"}},
		"a secret": {
			value: "/home/u/.ssh/npmrc", files: map[string]string{"/home/u/.ssh/npmrc": text},
		},
		"control": {value: "/home/u/etc/.npmrc", opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"/home/u/project/": "", "/home/u/other/": ""}
			files[test.value] = text
			for path, content := range test.files {
				files[path] = content
			}
			s := snapshotOf(t, resolvetest.InMemory(files), `{"enabled": true, "toolchains": ["node"]}`, "")
			s.Others = []string{"/home/u/other"}
			s.Host.Env["NPM_CONFIG_USERCONFIG"] = test.value
			c := s.Compile(document.KindTool)
			for path := range files {
				if strings.HasSuffix(path, "/") || !strings.HasSuffix(path, "npmrc") && path != test.value {
					continue
				}
				if got := accessOf(c, path); (got == "read") != test.opens || len(c.Policy.Copies) > 0 {
					t.Errorf("%s: granted %s, parts %v", path, got, c.Policy.Copies)
				}
			}
			for _, d := range c.Diagnostics {
				if strings.Contains(d.Message, "USERCONFIG") && strings.Contains(d.Message, "read_only") {
					t.Errorf("opening it is suggested: %s", d.Message)
				}
			}
		})
	}
}

// Of the files of the machine only those are hidden that have the name of a file
// of settings. Sessions need others, whatever a variable says about them.
func TestVariables_HideNoOtherFileOfTheMachine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		variable, value, file, text string
		hides                       bool
	}{
		// Not settings of Maven, also where a variable hides those.
		{"MAVEN_OPTS", "-Djavax.net.ssl.trustStore=/data/cacerts", "/data/cacerts", "<password>a</password>\n", false},
		{"MAVEN_ARGS", "-Dlogback.configurationFile=/data/x.xml", "/data/x.xml", "<password>a</password>\n", false},
		{"PIP_CONFIG_FILE", "/etc/pki/ca.pem", "/etc/pki/ca.pem", "password = hunter2\n", false},
		// The controls: a usual name, and a file that the user's settings grant.
		{"PIP_CONFIG_FILE", "/etc/corp/pip.conf", "/etc/corp/pip.conf", "password = hunter2\n", true},
		{"PIP_CONFIG_FILE", "/data/mine", "/data/mine", "password = hunter2\n", true},
		{"MAVEN_ARGS", "-s /data/x.xml", "/data/x.xml", "<password>a</password>\n", true},
		// Built-in grants let sessions write there: it is no file of the machine's.
		{"PIP_CONFIG_FILE", "/tmp/x/conf", "/tmp/x/conf", "password = hunter2\n", true},
		{"PIP_CONFIG_FILE", "/var/tmp/conf", "/var/tmp/conf", "password = hunter2\n", true},
	} {
		s := snapshotOf(t, resolvetest.InMemory(map[string]string{"/home/u/project/": "", test.file: test.text}),
			`{"enabled": true, "toolchains": ["java", "python"], "additional_read_only_paths": ["/data"],
			"additional_read_write_paths": ["/tmp", "/var/tmp"]}`, "")
		s.Host.Env[test.variable] = test.value
		c := s.Compile(document.KindTool)
		if _, hidden := c.Policy.HiddenAt(test.file); hidden != test.hides {
			t.Errorf("%s=%s: hidden: %t", test.variable, test.value, hidden)
		}
		about := said(c, test.file) + said(c, userFile)
		if !test.hides && strings.Contains(about, test.variable) {
			t.Errorf("%s=%s: it is said %s", test.variable, test.value, about)
		}
	}
}

// The files in condarc.d hold tokens as condarc does.
func TestHidden_FilesOfCondasDirectories(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.InMemory(map[string]string{
		"/home/u/project/":                   "",
		"/home/u/.conda/condarc.d/a.yml":     "channels:\n  - https://conda.corp.example/t/tk-1a2b3c4d5e6f/main\n",
		"/home/u/.conda/condarc.d/b.yml":     "channels:\n  - conda-forge\n",
		"/home/u/.config/conda/condarc.d/a":  "channel_alias: https://u:hunter2@conda.corp.example\n",
		"/home/u/.config/conda/condarc.d/b":  "channels:\n  - conda-forge\n",
		"/home/u/.config/conda/condarc.d/c/": "",
	}), `{"enabled": true, "toolchains": ["python"]}`, "")
	c := s.Compile(document.KindTool)
	for path, want := range map[string]bool{
		"/home/u/.conda/condarc.d/a.yml": true, "/home/u/.conda/condarc.d/b.yml": false,
		"/home/u/.config/conda/condarc.d/a": true, "/home/u/.config/conda/condarc.d/b": false,
	} {
		if _, hidden := c.Policy.HiddenAt(path); hidden != want {
			t.Errorf("%s is hidden: %t, want %t", path, hidden, want)
		}
	}
	const part = "channel_alias: https://conda.corp.example\n"
	if len(c.Policy.Copies) != 1 || c.Policy.Copies[0].Text != part {
		t.Errorf("sessions read %+v", c.Policy.Copies)
	}
}
