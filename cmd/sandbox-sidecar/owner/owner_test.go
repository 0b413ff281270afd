//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// tree are processes by their ids: the parent, and the command line. One with a
// "+" leads a terminal's session, one with a "#" is another user's, one with a "*"
// was started with the variable, and one with a "!" may not be looked at. After "="
// the line is one argument, as a title is.
type tree map[int]struct {
	parent int
	line   string
}

const marks = "+#*!="

func (t tree) find(pid int) (Process, error) {
	at, known := t[pid]
	if !known {
		return Process{}, fs.ErrNotExist
	}
	line := strings.TrimLeft(at.line, marks)
	p := Process{PID: pid, Parent: at.parent, User: 1000, Leads: t.has(pid, '+'), Argv: strings.Split(line, " ")}
	if t.has(pid, '=') {
		p.Argv = []string{line}
	}
	if t.has(pid, '#') {
		p.User = 0
	}
	return p, nil
}

// has reports whether a process has a mark.
func (t tree) has(pid int, mark rune) bool {
	line := t[pid].line
	return strings.ContainsRune(line[:len(line)-len(strings.TrimLeft(line, marks))], mark)
}

// processes are those of the tree. named is the variable's value.
func (t tree) processes(named string) Processes {
	return Processes{Look: t.find, Environ: func(pid int) ([]string, error) {
		switch {
		case t.has(pid, '!'):
			return nil, fs.ErrPermission
		case t.has(pid, '*'):
			return []string{"HOME=/home/me", Variable + "=" + named}, nil
		}
		return []string{"HOME=/home/me", Variable + "=8"}, nil
	}}
}

// treeOf are the processes above the link, from its parent up, below process 1.
func treeOf(above []string) tree {
	all := tree{1: {0, "#init"}, link: {link + 1, "link -c true"}}
	for i, line := range above {
		parent := link + i + 2
		if i == len(above)-1 {
			parent = 1
		}
		all[link+i+1] = struct {
			parent int
			line   string
		}{parent, line}
	}
	return all
}

const link = 9

// owned is who owns a command.
type owned struct {
	above []string // from the parent up, below process 1
	named string
	want  int // how many steps up; 0: none
}

func mustOwn(t *testing.T, rows map[string]owned) {
	t.Helper()
	for name, c := range rows {
		got, err := Of(link, c.named, treeOf(c.above).processes(c.named))
		switch {
		case c.want == 0 && err == nil:
			t.Errorf("%s: %s, expected none", name, got)
		case c.want == 0 && errors.Is(err, ErrNone) != (c.named == ""):
			t.Errorf("%s: %v", name, err)
		case c.want > 0 && (err != nil || got.PID != link+c.want):
			t.Errorf("%s: %s, %v, expected process %d", name, got, err, link+c.want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	mustOwn(t, map[string]owned{
		"an agent":                      {above: []string{"claude"}, want: 1},
		"by a shell of node":            {above: []string{"/bin/sh -c link", "node agent.js"}, want: 2},
		"by two shells":                 {above: []string{"sh -ec link", "bash -lc sh", "codex"}, want: 3},
		"by a shell that leads nothing": {above: []string{"/bin/bash -c -l link", "opencode"}, want: 2},
		"by make":                       {above: []string{"make", "sh -c make", "agent"}, want: 1},
		"by a recipe of make":           {above: []string{"/bin/sh -c link", "make", "agent"}, want: 2},
		"by xargs":                      {above: []string{"xargs link -c", "sh -c xargs", "agent"}, want: 1},
		"by a script":                   {above: []string{"bash build.sh", "agent"}, want: 1},
		"by a part of a script":         {above: []string{"bash build.sh", "bash build.sh", "agent"}, want: 2},
		"by a script of a script":       {above: []string{"bash a.sh", "bash b.sh", "agent"}, want: 1},
		"by an interactive shell":       {above: []string{"bash", "agent"}, want: 1},
		"by a login shell":              {above: []string{"-bash", "sshd"}, want: 1},
		"by a terminal's first shell":   {above: []string{"+sh -c link", "tmux"}, want: 1},
		"an agent that is a shell":      {above: []string{"bash -c loop", "bash", "sshd"}, want: 1},
		"such an agent in a terminal":   {above: []string{"sh -c link", "sh -c loop", "+bash", "tmux"}, want: 2},
		"an agent of a script":          {above: []string{"sh -c link", "bash -c loop", "bash x.sh"}, want: 2},
		"a part of such an agent":       {above: []string{"bash -c loop", "bash -c loop", "+bash"}, want: 2},
		"a limit in a script":           {above: []string{"timeout 9 link", "bash x.sh", "agent"}, want: 2},
		"by another user's":             {above: []string{"sh -c link", "#sudo link"}},
		"by nothing that ends":          {above: []string{"sh -c link"}},
		"by systemd":                    {above: []string{"/usr/lib/systemd/systemd --user", "+login"}},
		"by a container's first":        {above: []string{"sh -c link", "/usr/bin/tini -- sh", "agent"}},
		"by a process that has gone":    {above: nil},
		"without a command line":        {above: []string{"", "agent"}, want: 1},
		"a script called as a wrapper":  {above: []string{"bash script", "agent"}, want: 1},
		"an agent of such a name":       {above: []string{"node script.js", "bash"}, want: 1},
		"an agent with a title":         {above: []string{"sh -c link", "=claude --resume /x/y", "+bash"}, want: 2},

		// It leads its terminal, as by "tmux new claude", "ssh -t host claude" and
		// "kitty -e codex".
		"an agent that leads":             {above: []string{"+claude", "tmux"}, want: 1},
		"by a shell of one that leads":    {above: []string{"sh -c link", "+claude", "tmux"}, want: 2},
		"by a wrapper of one that leads":  {above: []string{"timeout 9 sh", "sh -c link", "+node agent.js"}, want: 3},
		"a leader that is a wrapper":      {above: []string{"sh -c link", "+timeout 9 sh -c loop", "tmux"}, want: 2},
		"by another shell of a terminal":  {above: []string{"sh -c loop", "+nu", "tmux"}, want: 1},
		"by a shell's copy in a terminal": {above: []string{"sh -c loop", "sh -c loop", "+claude"}, want: 3},

		// A Landlock domain or other rights between agent and command.
		"one that may not be looked at": {above: []string{"sh -c link", "!claude"}},
		"by a wrapper of such a kind":   {above: []string{"!bwrap link", "claude"}, want: 2},
	})
}

// Each agent of "sandbox-sidecar agent", and those of editors, as they start shells.
func TestOf_Agents(t *testing.T) {
	t.Parallel()
	mustOwn(t, map[string]owned{
		"Claude Code":          {above: []string{"/bin/bash -c -l eval 'link -c y'", "claude", "+bash"}, want: 2},
		"Claude Code of npm":   {above: []string{"bash -c link", "node /usr/bin/claude", "npm exec claude"}, want: 2},
		"Codex":                {above: []string{"/opt/codex/codex exec", "node /usr/bin/codex", "+bash"}, want: 1},
		"Codex, by its shell":  {above: []string{"bash -lc link", "codex", "node /usr/bin/codex", "+bash"}, want: 2},
		"Codex, in its bwrap":  {above: []string{"bash -lc link", "bwrap --dev /dev bash", "codex", "+bash"}, want: 3},
		"Codex, in Landlock":   {above: []string{"codex-linux-sandbox -- link", "codex", "+bash"}, want: 2},
		"Gemini CLI":           {above: []string{"bash -c link", "node gemini.js", "node gemini.js", "+bash"}, want: 2},
		"OpenCode":             {above: []string{"/bin/bash -c -l link", "opencode", "+bash"}, want: 2},
		"Copilot CLI":          {above: []string{"/bin/bash -c link", "node /usr/bin/copilot", "+bash"}, want: 2},
		"aider":                {above: []string{"/bin/sh -c link", "python3 /usr/bin/aider", "+bash"}, want: 2},
		"cursor-agent":         {above: []string{"bash -c link", "cursor-agent", "+bash"}, want: 2},
		"claude-agent-acp":     {above: []string{"bash -c link", "claude", "node claude-agent-acp", "zed"}, want: 2},
		"codex-acp":            {above: []string{"bash -lc link", "codex-acp", "zed"}, want: 2},
		"one of VS Code's":     {above: []string{"bash -c link", "codex app-server", "code --type=utility"}, want: 2},
		"one of Neovim's":      {above: []string{"sh -c link", "claude", "nvim"}, want: 2},
		"one below npm":        {above: []string{"sh -c link", "node agent.js", "sh -c node", "npm run x"}, want: 2},
		"a command of acp":     {above: []string{"sandbox-sidecar acp -- claude", "zed"}, want: 1},
		"one by an asdf shim":  {above: []string{"sh -c link", "node x", "bash /opt/asdf exec node", "+bash"}, want: 2},
		"in a container, by 1": {above: []string{"sh -c link", "claude"}, want: 2},
	})
}

// Wrappers, and options of shells before -c.
func TestOf_Wrappers(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"timeout 9 link", "time link", "env A=1 link", "nice link", "ionice -c3 link", "nohup link",
		"stdbuf -oL link", "setsid -w link", "strace -f link", "ltrace link", "flock x link", "script -c link",
		"chrt -b 0 link", "taskset 1 link", "numactl -l link", "prlimit link", "sudo link", "doas link",
		"setpriv link", "unshare -r link", "bwrap link", "firejail link", "dbus-run-session link", "uv run link",
		"uvx link", "direnv exec . link", "mise exec -- link", "nix-shell --run link", "nix develop -c link",
		"npx link", "=npm exec link", "node /usr/bin/npx link", "node /usr/lib/npm/bin/npx-cli.js link",
		"node --no-warnings /usr/bin/npm exec link", "node /usr/bin/pnpm exec link",
		"node /usr/lib/pnpm.cjs dlx link", "pnpm exec link", "node /usr/bin/yarn exec link", "bunx link",
		"bun x link", "/usr/bin/python3 /usr/bin/poetry run link", "python3.13 -m pipenv run link",
		"python3 /usr/bin/hatch run link", "python3 /opt/conda/bin/conda run link", "ruby /usr/bin/bundle exec link",
		"perl /usr/bin/chronic link", "/bin/sh /usr/bin/xvfb-run -a link", "sh -e /usr/bin/xvfb-run link",
		"/usr/bin/expect -- /usr/bin/unbuffer link", "tclsh8.6 /usr/bin/unbuffer link", "node /usr/bin/srt link",

		"bash -eu -o pipefail -c link", "bash -euo pipefail -c link", "bash -O extglob -c link",
		"bash +O extglob -c link", "bash +x -c link", "bash +o history -ec link", "bash --rcfile F -c link",
		"bash --init-file F -c link", "bash --norc --noprofile -c link", "bash -norc -c link",
		"bash -o pipefail -O extglob -xc link", "bash -oO pipefail extglob -c link", "sh -o errexit -c link",
		"zsh -o extendedglob -c link", "zsh -oextendedglob -c link", "zsh --emulate sh -c link",
		"ksh -o pipefail -c link", "fish -C x -c link", "fish --command link", "fish --command=link",
		"fish -N --init-command x -c link", "busybox sh -c link", "busybox ash -o pipefail -c link", "nu -c link",
		"nu --config F --commands link", "tcsh -fc link", "-bash -c link",
	} {
		mustOwn(t, map[string]owned{line: {above: []string{line, "agent", "bash"}, want: 2}})
	}
	for _, line := range []string{
		"npm test", "=npm run build", "pnpm test", "pnpm install", "poetry shell", "mise run build", "uv sync", "npm",
		"make", "xargs link", "parallel link", "watch link", "hyperfine link", "git commit", "node", "node -e npx",
		"python3 -c npx", "python3 -m", "python3 poetry.py run", "node timeout",

		"bash", "bash -i", "bash -l", "bash -o pipefail", "bash build.sh", "bash build.sh -c", "bash -o -c build.sh",
		"bash --rcfile -c build.sh", "bash -- build.sh -c", "bash - -c", "bash -norc build.sh", "bash -O -c",
		"bash +c x", "sh -s -- -c", "zsh -ocorrect build.sh", "fish -C -c", "fish build.fish -c", "busybox",
		"busybox vi -c", "busybox sh build.sh -c",
	} {
		mustOwn(t, map[string]owned{line: {above: []string{line, "agent", "bash"}, want: 1}})
	}
}

// What starts commands for several agents as its own children owns none. What it
// has started may.
func TestOf_ServersOwnNothing(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"/usr/share/code/code", "code --type=utility --utility-sub-type=node.mojom.NodeService",
		"=/proc/self/exe --type=utility --utility-sub-type=node.mojom.NodeService --lang=en",
		"node /home/me/.vscode-server/out/bootstrap-fork --type=extensionHost", "cursor", "windsurf", "codium",
		"nvim", "+nvim", "nvim --embed", "vim", "vim.basic", "gvim", "emacs", "emacs-29.4 -nw", "hx", "zed-editor",
		"/opt/idea/bin/idea", "/opt/idea/jbr/bin/java -cp x com.intellij.idea.Main", "pycharm", "plugin_host-3.8",
		"node /usr/bin/code-server", "=sshd: me@notty", "=sshd-session: me@pts/0", "=tmux: server", "tmux new -d",
		"SCREEN", "cron -f", "gnome-shell",
	} {
		mustOwn(t, map[string]owned{
			line:                  {above: []string{line, "bash"}},
			line + ", by a shell": {above: []string{"sh -c link", "sh -c sh", line, "bash"}},
			line + ", by a tool":  {above: []string{"sh -c link", "agent", line, "bash"}, want: 2},
		})
	}
}

// The variable names an ancestor if the owner without it, and all between, were
// started with it. A session can make an agent that runs load a file with it.
func TestOf_Named(t *testing.T) {
	t.Parallel()
	mustOwn(t, map[string]owned{
		"one of two":              {above: []string{"*helper", "agent", "bash"}, named: "11", want: 2},
		"beyond two":              {above: []string{"*helper", "*agent", "daemon"}, named: "12", want: 3},
		"beyond a wrapper":        {above: []string{"sh -c link", "*agent", "bash"}, named: "12", want: 3},
		"the owner itself":        {above: []string{"sh -c link", "agent", "bash"}, named: "11", want: 2},
		"what is nearer":          {above: []string{"sh -c link", "agent", "bash"}, named: "10", want: 1},
		"first of a terminal":     {above: []string{"*agent", "+bash", "tmux"}, named: "11", want: 2},
		"beyond a terminal":       {above: []string{"*agent", "*+bash", "daemon"}, named: "12"},
		"an editor by itself":     {above: []string{"sh -c link", "*nvim", "bash"}, named: "11", want: 2},
		"by .env, the IDE":        {above: []string{"sh -c link", "agent", "ide"}, named: "12"},
		"by .env, of its parent":  {above: []string{"*agent", "host", "ide"}, named: "12"},
		"by .env, of a terminal":  {above: []string{"agent", "+bash", "tmux"}, named: "11"},
		"by .env, an editor":      {above: []string{"sh -c link", "nvim", "bash"}, named: "11"},
		"by .env, beyond one":     {above: []string{"*sh -c link", "nvim", "*bash"}, named: "12"},
		"by .env, of a shell":     {above: []string{"bash -c loop", "bash", "daemon"}, named: "11"},
		"one that is not seen":    {above: []string{"!agent", "bash", "daemon"}, named: "11"},
		"what is no ancestor":     {above: []string{"*agent", "*bash"}, named: "77"},
		"what is no number":       {above: []string{"*agent"}, named: "agent"},
		"process 1":               {above: []string{"*agent"}, named: "1"},
		"beyond another user's":   {above: []string{"*#sudo", "*agent"}, named: "11"},
		"beyond one that adopts":  {above: []string{"*agent", "*systemd", "*bash"}, named: "12"},
		"one with another number": {above: []string{"*agent", "bash"}, named: "011", want: 2},
	})
}

// Whatever a process tree is like, the walk ends, at an ancestor of the same user.
func TestOf_EndsInALoop(t *testing.T) {
	t.Parallel()
	loop := tree{2: {3, "sh -c a"}, 3: {2, "sh -c b"}}
	if got, err := Of(2, "", loop.processes("")); !errors.Is(err, ErrNone) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	self, err := Look(os.Getpid())
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /proc")
	}
	if err != nil || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.User != os.Getuid() ||
		self.Birth == 0 || self.name() != "owner.test" {
		t.Errorf("%+v, %v", self, err)
	}
	for _, stat := range []string{"", "7 (a", "7 (a) S x 1 1 0 -1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"} {
		if p, err := parse(stat); err == nil {
			t.Errorf("%q: %+v", stat, p)
		}
	}
	odd := "7 (a) (b c) S 3 7 7 34816 -1 1 2 3 4 5 6 7 8 9 10 11 12 13 99 15"
	if p, err := parse(odd); err != nil || p.PID != 7 || p.Parent != 3 || !p.Leads || p.Birth != 99 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	name, err := os.Readlink("/proc/self/ns/pid")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /proc")
	}
	for status, want := range map[string]bool{
		"Pid:\t7\nNSpid:\t7\n": true, "Pid:\t7\n": true,
		"NSpid:\t7\t7\n": false, "NSpid:\t9\t7\n": false, "NSpid:\t9\n": false,
	} {
		if got := isOnly(status, "7"); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	var number uint64
	if _, err := fmt.Sscanf(name, "pid:[%d]", &number); err != nil {
		t.Fatal(err)
	}
	here, err := Namespace()
	if err != nil || here != ofBoot(number, boot) {
		t.Errorf("%d, %v, in %s", here, err, name)
	}
	if here == ofBoot(number, "another boot, or another machine") || here == ofBoot(number+1, boot) {
		t.Error("another namespace has the same number")
	}
}

// A process has ended only if its id is free, or another process has it: an error
// that says something else is no proof.
func TestLives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		birth uint64
		err   error
		want  bool
	}{
		"it is there":            {birth: 99, want: true},
		"another has its id":     {birth: 98},
		"there is none":          {err: fs.ErrNotExist},
		"it ends as it is read":  {err: &fs.PathError{Op: "read", Path: "/proc/7/stat", Err: syscall.ESRCH}},
		"it may not be read":     {err: fs.ErrPermission, want: true},
		"too many files":         {err: syscall.EMFILE, want: true},
		"something else is read": {err: errors.New("unexpected content"), want: true},
	} {
		got := Lives(7, 99, func(int) (Process, error) { return Process{PID: 7, Birth: c.birth}, c.err })
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Variables are what a process was started with only if all of them are, set or not.
func TestStartedWith_NoticesEachVariable(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/home/me", "XDG_STATE_HOME=", "HOMES=/x"}
	names := []string{"HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"}
	at := Process{PID: 8, Argv: []string{"claude"}}
	for name, now := range map[string]map[string]string{
		"":                {"HOME": "/home/me", "XDG_STATE_HOME": "", "OTHER": "x"},
		"HOME":            {"HOME": "/home/me/", "XDG_STATE_HOME": ""},
		"XDG_STATE_HOME":  {"HOME": "/home/me"},
		"XDG_RUNTIME_DIR": {"HOME": "/home/me", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": ""},
	} {
		err := startedWith(at, env, names, func(name string) (string, bool) {
			value, set := now[name]
			return value, set
		})
		switch {
		case name == "" && err == nil:
		case name == "" || !errors.Is(err, ErrLate) || !strings.HasPrefix(err.Error(), name+" is not what claude (8)"):
			t.Errorf("%q: %v", name, err)
		}
	}
	gone := Process{PID: 1 << 30}
	if err := gone.StartedWith(nil, os.LookupEnv); err == nil || errors.Is(err, ErrLate) {
		t.Errorf("a process that cannot be looked at: %v", err)
	}
}
