//go:build linux

package hosts

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// layouts are where /etc/resolv.conf leads on machines of users.
var layouts = []string{
	"../run/systemd/resolve/stub-resolv.conf", // Ubuntu, Fedora, Arch
	"/run/systemd/resolve/resolv.conf",
	"/run/NetworkManager/resolv.conf",
	"../run/resolvconf/resolv.conf",
	"/mnt/wsl/resolv.conf",
}

// relink mounts directories of this test's own over /etc, /run and /mnt. It makes
// /etc/resolv.conf a symlink to $2, and executes the rest with $dir as work space.
const relink = `set -e
dir=$1 link=$2; shift 2
mount --make-rprivate /
mount -t tmpfs none "$dir"; mkdir "$dir/upper" "$dir/work"
mount -t tmpfs none /run; mount -t tmpfs none /mnt
mount -t overlay -o "lowerdir=/etc,upperdir=$dir/upper,workdir=$dir/work" none /etc
rm -f /etc/resolv.conf; ln -s "$link" /etc/resolv.conf
target=$(cd /etc && realpath -m "$link"); mkdir -p "$(dirname "$target")"
echo nameserver 192.0.2.53 >"$target"
export target; exec "$@"`

// With the network a session reads what /etc/resolv.conf leads to, as outside.
// With hosts it reads which resolver answers it. Both take turns with the layouts.
func TestLayouts_SessionsKnowTheirResolver(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root mounts over /etc")
	}
	harness.Require(t, "network_hosts")
	const theirs, own = "nameserver 192.0.2.53\n", "nameserver 198.18.0.2\n"
	for i, link := range layouts {
		t.Run(strings.ReplaceAll(strings.Trim(link, "./"), "/", "-"), func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			read := func(settings harness.Sandbox, script string) string {
				file := w.ProjectPath("settings.json")
				harness.Write(t, file, harness.Defaults(settings))
				dir := w.ProjectPath("over")
				harness.MakeDir(t, dir)
				command := exec.Command("unshare", "-m", "/bin/sh", "-c", relink, "sh", dir, link,
					harness.Binary(t), "exec", "--sandbox", "--settings", file, "--project", w.Project, "--",
					"/bin/sh", "-c", script)
				command.Dir, command.Env = w.Project, harness.Environ(w)
				output, err := command.CombinedOutput()
				if err != nil {
					t.Errorf("%v", err)
				}
				return string(output)
			}
			if harness.Turn(t, i, 2) {
				hosts := allowed("allowed.example")
				if got := read(hosts, "cat /etc/resolv.conf"); !strings.HasPrefix(got, own) {
					t.Errorf("with hosts: %q", got)
				}
			}
			if !harness.Turn(t, i+1, 2) {
				return
			}
			if got := read(harness.Sandbox{"allow_network": true}, "cat /etc/resolv.conf"); got != theirs {
				t.Errorf("with the network: %q", got)
			}
			if got := read(harness.Sandbox{
				"allow_network": true, "system_paths": harness.Sandbox{"read_only": []string{"/etc", "/usr/share"}},
			}, "cat /etc/resolv.conf 2>/dev/null || echo closed"); !strings.Contains(got, "closed") {
				t.Errorf("control: without the grant: %q", got)
			}
		})
	}
}
