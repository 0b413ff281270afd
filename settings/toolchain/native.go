package toolchain

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// native are the sets of compilers, and of what brings them.
var native = []Toolchain{
	{
		Name: "c", About: "C and C++: the caches of ccache, sccache, Conan and vcpkg, and Xcode.",
		Places: []Place{
			{
				Variable: "CCACHE_DIR", At: "~/.cache/ccache", Access: policy.ReadWrite, Platform: "linux",
				Create: true, Why: "what ccache has compiled",
			},
			{
				Variable: "CCACHE_DIR", At: "~/Library/Caches/ccache", Access: policy.ReadWrite, Platform: "darwin",
				Create: true, Why: "what ccache has compiled",
			},
			{
				At: "~/.ccache", Access: policy.ReadWrite, OnlyIfThere: "ccache prefers it to the new place",
				Why: "what ccache has compiled, at its old place",
			},
			{
				Variable: "SCCACHE_DIR", At: "~/.cache/sccache", Access: policy.ReadWrite, Platform: "linux",
				Create: true, Why: "what sccache has compiled",
			},
			{
				Variable: "SCCACHE_DIR", At: "~/Library/Caches/Mozilla.sccache", Access: policy.ReadWrite,
				Platform: "darwin", Create: true, Why: "what sccache has compiled",
			},
			{
				Variable: "CONAN_HOME", At: "~/.conan2", Below: "p", Access: policy.ReadWrite,
				OnlyIfThere: "Conan makes all of its directory at once", Why: "packages of Conan",
			},
			{Variable: "CONAN_HOME", At: "~/.conan2", Below: "profiles", Access: policy.Read, Why: "profiles of Conan"},
			{Variable: "VCPKG_ROOT", Access: readExecute, Why: "vcpkg"},
			{At: "~/.cache/vcpkg", Access: policy.ReadWrite, Create: true, Why: "packages of vcpkg"},
			{At: "~/.cmake/packages", Access: policy.Read, Why: "packages that are registered with CMake"},
			{
				Variable: "DEVELOPER_DIR", At: "/Applications/Xcode.app", Access: readExecute, Platform: "darwin",
				Why: "compilers and SDKs",
			},
			{At: "/Library/Developer", Access: readExecute, Platform: "darwin", Why: "compilers and SDKs"},
		},
		Variables: []Variable{
			{"CC", "the C compiler"},
			{"CXX", "the C++ compiler"},
			{"AR", "the archiver"},
			{"LD", "the linker"},
			{"CPPFLAGS", "flags"},
			{"CFLAGS", "flags"},
			{"CXXFLAGS", "flags"},
			{"LDFLAGS", "flags"},
			{"MAKEFLAGS", "flags"},
			{"PKG_CONFIG_PATH", "where libraries are"},
			{"CMAKE_PREFIX_PATH", "where libraries are"},
			{"CMAKE_GENERATOR", "what builds"},
			{"CMAKE_BUILD_TYPE", "how it is built"},
			{"CMAKE_BUILD_PARALLEL_LEVEL", "how much is built at once"},
			{"CCACHE_DIR", "where the cache is"},
			{"CCACHE_BASEDIR", "which paths do not matter"},
			{"SCCACHE_DIR", "where the cache is"},
			{"CONAN_HOME", "where packages are"},
			{"VCPKG_ROOT", "where vcpkg is"},
			{"SDKROOT", "the SDK on macOS"},
			{"DEVELOPER_DIR", "where Xcode is"},
			{"MACOSX_DEPLOYMENT_TARGET", "the macOS to build for"},
		},
	},
	{
		Name: "nix", About: "Nix: the store, profiles and the cache. Building takes the daemon's socket, which " +
			"allowed_unix_sockets has to grant.",
		Places: []Place{
			{At: "/nix/store", Access: readExecute, Why: "everything that Nix has installed"},
			{At: "/nix/var/nix/profiles", Access: readExecute, Why: "which of it is in use"},
			{At: "/nix/var/nix/gcroots", Access: policy.Read, Why: "what is in use"},
			{At: "/nix/var/nix/db", Access: policy.Read, Why: "what is valid in the store"},
			{At: "/run/current-system", Access: readExecute, Why: "the system of NixOS and nix-darwin"},
			{At: "~/.local/state/nix/profiles", Access: readExecute, Why: "the user's profiles"},
			{At: "~/.nix-defexpr", Access: policy.Read, Why: "the user's channels"},
			{At: "~/.cache/nix", Access: policy.ReadWrite, Create: true, Why: "what was evaluated and fetched"},
		},
		Variables: []Variable{
			{"NIX_PATH", "where expressions are"},
			{"NIX_PROFILES", "which profiles are in use"},
			{"NIX_REMOTE", "who builds"},
			{"NIX_SSL_CERT_FILE", "which certificates count"},
			{"NIX_USER_PROFILE_DIR", "where the user's profiles are"},
			{"LOCALE_ARCHIVE", "translations"},
			{"IN_NIX_SHELL", "whether this is a development shell"},
		},
	},
}
