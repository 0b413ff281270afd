package cgroup

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseOwnCgroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		table, want string
		err         error
	}{
		"unified": {
			"0::/user.slice/user-1000.slice/session-2.scope\n",
			"/user.slice/user-1000.slice/session-2.scope", nil,
		},
		"root":              {"0::/\n", "/", nil},
		"hybrid":            {"9:name=systemd:/a\n4:memory:/b\n1:cpu:/0::/c\n0::/d\n", "/d", nil},
		"outside namespace": {"0::/../../other\n", "/../../other", nil},
		"colons and blanks": {"0::/a:b c\n", "/a:b c", nil},
		"without a newline": {"0::/a", "/a", nil},
		"v1 alone":          {"3:cpu,cpuacct:/\n1:name=systemd:/\n", "", errNoCgroup},
		"empty":             {"", "", errNoCgroup},
	} {
		got, err := parseOwnCgroup(strings.NewReader(test.table))
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestParseCgroupMounts(t *testing.T) {
	t.Parallel()
	const hybrid = `23 1 0:20 / / rw - ext4 /dev/vda rw
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate
42 31 0:39 /user\040slice/a\134b /mnt/with\040blank\011tab\012newline\134 rw - cgroup2 none rw
43 31 0:40 / /mnt/cgroup2\040- rw - tmpfs cgroup2 rw
44 31 0:41 /.. /ns rw - cgroup2 cgroup2 rw
`
	for name, test := range map[string]struct {
		table string
		want  []cgroupMount
	}{
		"hybrid, escapes, optional fields, namespace": {hybrid, []cgroupMount{
			{"/", "/sys/fs/cgroup/unified"}, {"/user slice/a\\b", "/mnt/with blank\ttab\nnewline\\"}, {"/..", "/ns"},
		}},
		"none":   {"23 1 0:20 / / rw - ext4 /dev/vda rw\n", nil},
		"broken": {"cgroup2\n - cgroup2 x\n1 2 - cgroup2 x rw\n", nil},
		"long line": {"1 1 0:1 / / rw - overlay o lowerdir=" + strings.Repeat("/l:", 100<<10) +
			"\n2 1 0:2 / /c rw - cgroup2 c rw\n", []cgroupMount{{"/", "/c"}}},
	} {
		got, err := parseCgroupMounts(strings.NewReader(test.table))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFind_ReturnsOnlyShownCgroups(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mount cgroupMount
		path  string
		want  string // empty if the mount does not show it
	}{
		{cgroupMount{"/", "/c"}, "/", "/c"},
		{cgroupMount{"/", "/c"}, "/a/b", "/c/a/b"},
		{cgroupMount{"/a", "/c"}, "/a", "/c"},
		{cgroupMount{"/a", "/c"}, "/a/b", "/c/b"},
		{cgroupMount{"/a", "/c"}, "/ab", ""},
		{cgroupMount{"/a", "/c"}, "/", ""},
		// In a cgroup namespace, the names of cgroups outside begin with "/..".
		{cgroupMount{"/", "/c"}, "/..", ""},
		{cgroupMount{"/", "/c"}, "/../../other", ""},
		{cgroupMount{"/..", "/c"}, "/", ""},
		{cgroupMount{"/..", "/c"}, "/../other", "/c/other"},
		{cgroupMount{"/..", "/c"}, "/../../other", ""},
		{cgroupMount{"/", "/c"}, "/a..b/..c", "/c/a..b/..c"},
	} {
		got, shown := test.mount.find(test.path)
		if got != test.want || shown != (test.want != "") {
			t.Errorf("%q shows %q at %q, %t; want %q", test.mount, test.path, got, shown, test.want)
		}
	}
}

func TestOwnCgroup_ListsThisProcess(t *testing.T) {
	t.Parallel()
	dir, err := ownCgroup()
	if errors.Is(err, errNoCgroup) {
		skip(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	members, err := cgroupMembers(dir)
	if err != nil || !slices.Contains(members, os.Getpid()) {
		t.Errorf("%s does not hold this process: %v, %v", dir, members, err)
	}
}
