// Package proc finds, watches, starts and signals processes.
//
// [Table] lists processes, [Descendants] picks those that descend from some, and
// [KillLoop] finds and kills until nobody is left. [Start] starts a child of
// this process and remembers it, so that others can be told apart ([Alone]).
// A process is always named by an [ID], because a number alone is given away
// again.
package proc
