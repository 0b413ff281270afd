// Package machines runs everyday programs on machines that are laid out as those of
// users: other links in /etc, other resolvers, other homes. It also looks names of
// hosts up there, in every way that programs have, with the network and without.
//
// A layout is a script in the directory layouts. It mounts over the machine that
// it runs on, in a mount namespace of its own, so a layout is not a distribution:
// the programs are this machine's. docs/machines.md is written from it.
package machines
