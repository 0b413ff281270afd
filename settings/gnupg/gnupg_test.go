package gnupg

import "testing"

// The name is the one that gpgconf --list-dirs prints.
func TestSocketDirs(t *testing.T) {
	t.Parallel()
	got := SocketDirs("/root/.gnupg", "/tmp/gpgt/h3", "/tmp/gpgt/h3", 0)[1]
	if got != "/run/user/0/gnupg/d.yf4gf3oncufqbnygb5pmtrsw" {
		t.Error(got)
	}
	if got := SocketDirs("/h/.gnupg", "/h/.gnupg", "/h/.gnupg", 1000)[1]; got != "/run/user/1000/gnupg" {
		t.Error(got)
	}
}
