package linux

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The fix is one step, for what this machine's files show.
func TestNamespaceFix_IsOneStepForThisMachine(t *testing.T) {
	t.Parallel()
	const most, clone = "proc/sys/user/max_user_namespaces", "proc/sys/kernel/unprivileged_userns_clone"
	const restrict = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing shows why": {map[string]string{most: "15000\n", clone: "1\n", restrict: "0\n"}, ""},
		"no files":          {nil, ""},
		"none are allowed":  {map[string]string{most: "0\n", ".dockerenv": ""}, "sysctl -w user.max_user_namespaces"},
		"Docker": {
			map[string]string{".dockerenv": "", restrict: "1\n"}, "--security-opt seccomp=unconfined",
		},
		"Podman":            {map[string]string{"run/.containerenv": ""}, "--security-opt seccomp=unconfined"},
		"Debian's sysctl":   {map[string]string{clone: "0\n"}, "sysctl -w kernel.unprivileged_userns_clone=1"},
		"Ubuntu's AppArmor": {map[string]string{clone: "1\n", restrict: "1\n"}, "AppArmor profile"},
	} {
		files := fstest.MapFS{}
		for path, text := range test.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		got := namespaceFix(files)
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
