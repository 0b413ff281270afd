// Package shells tests the program in the place of a shell, called as tmux,
// sshd, editors and agents call one.
package shells
