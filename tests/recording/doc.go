// Package recording types the commands of README.md into a real shell, and
// compares what is printed with what README.md says. With -update it writes that
// to README.md, and draws docs/recording.svg.
package recording
