// This file is empty. Without it the compiler rejects functions without a body,
// which unscheduled_linux.go takes from the runtime.
