// Package namespace gives a session namespaces of its own: mounts, System V IPC,
// and, if they are wanted and possible, terminals and a network.
//
// The sidecar plans ([Available.Plan], [PlanMounts]) and starts the stage, if need
// be in a user namespace ([Setup.Attach]). The stage then calls [Setup.Enter],
// which enters the other namespaces, and makes and proves everything before the
// stage confines itself.
//
// The design is described in docs/design/namespaces.md and
// docs/design/protected-mounts.md.
package namespace
