package syscalls

// nativeRefusals are refusals of calls that other architectures do not have.
var nativeRefusals []refusal
