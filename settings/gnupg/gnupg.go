// Package gnupg knows where GnuPG has its files.
package gnupg

import (
	"crypto/sha1"
	"encoding/base32"
	"path/filepath"
	"strconv"
)

// Socket is the name of the agent's socket.
const Socket = "S.gpg-agent"

// zbase32 is the encoding of names of directories.
var zbase32 = base32.NewEncoding("ybndrfg8ejkmcpqxot1uwisza345h769").WithPadding(base32.NoPadding)

// SocketDirs are the directories where GnuPG looks for its sockets before it
// looks into its home directory. usual and real are the usual home directory and
// the one that counts, without symlinks; home is the latter as it was named.
func SocketDirs(usual, real, home string, uid int) []string {
	var dirs []string
	for _, base := range []string{"/run/gnupg", "/run", "/var/run/gnupg", "/var/run"} {
		dir := filepath.Join(base, "user", strconv.Itoa(uid), "gnupg")
		if real != usual {
			// 15 of 20 bytes, as GnuPG shortens it.
			sum := sha1.Sum([]byte(home))
			dir = filepath.Join(dir, "d."+zbase32.EncodeToString(sum[:15]))
		}
		dirs = append(dirs, dir)
	}
	return dirs
}
