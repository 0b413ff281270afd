package syscalls

// nativeRefusals are those of calls that other architectures do not have.
var nativeRefusals []refusal
