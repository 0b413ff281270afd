// Package toolchains tests each set of the setting "toolchains": with it a
// small build or program works in a sandbox, and without it the same is
// refused.
package toolchains
