package namespace

import (
	"fmt"
	"slices"
	"testing"
)

func TestPlan_GivesWhatIsWantedAndAvailable(t *testing.T) {
	t.Parallel()
	all := Available{Mounts: true, Network: true, User: true}
	for _, test := range []struct {
		available          Available
		terminals, network bool
		want               *Setup
	}{
		{all, false, false, &Setup{User: true}},
		{all, true, false, &Setup{User: true, Terminals: true}},
		{all, false, true, &Setup{User: true, Network: true}},
		{all, true, true, &Setup{User: true, Terminals: true, Network: true}},
		{Available{Mounts: true, Network: true}, true, false, &Setup{Terminals: true}},
		{Available{Mounts: true}, true, true, &Setup{Terminals: true}},
		{Available{Gap: "none"}, true, true, nil},
	} {
		got := test.available.Plan(test.terminals, test.network)
		if (got == nil) != (test.want == nil) || got != nil && fmt.Sprint(*got) != fmt.Sprint(*test.want) {
			t.Errorf("terminals %t, network %t of %+v: %+v, want %+v", test.terminals, test.network,
				test.available, got, test.want)
		}
	}
}

func TestSSHIncludes(t *testing.T) {
	t.Parallel()
	got := sshIncludes("# Include no\nInclude /etc/ssh/ssh_config.d/*.conf\n  include\ta \"b c\" # " +
		"d\nINCLUDE=x\nHost Include\n Includes y\nInclude\n")
	// A quoted name with a blank is split in two. No such files exist, so ssh
	// complains as it does without a sandbox.
	if want := []string{"/etc/ssh/ssh_config.d/*.conf", "a", "b", "c", "x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
