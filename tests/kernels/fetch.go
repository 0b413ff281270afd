package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fetcher gets kernels from Debian's packages into a cache. Its apt has its own
// configuration, so that the machine's is unchanged.
type fetcher struct {
	cache  string
	mirror string
	// bytes is the size of the packages that were downloaded.
	bytes int64
}

func newFetcher(ctx context.Context, cache string) (*fetcher, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)",
		"Created-By: Packages").Output()
	if err != nil {
		return nil, fmt.Errorf("ask apt for its mirror: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if mirror, found := strings.CutSuffix(strings.TrimRight(line, "/\n"), "/debian"); found {
			return &fetcher{cache: cache, mirror: mirror}, nil
		}
	}
	return nil, errors.New("ask apt for its mirror: no Debian mirror is configured")
}

// errUnavailable means that the mirror does not have the kernel.
var errUnavailable = errors.New("unavailable")

// candidates bounds how many versions are tried: an index may name a package
// that the mirror has already lost.
const candidates = 3

// fetched is a kernel on disk.
type fetched struct {
	version string
	image   string
	modules string // directory with the modules that guests load
}

// modules are parts that a kernel loads on demand from its package's files. A
// guest has only these, by their paths below the kernel's modules. unix_diag
// identifies a session's own Unix sockets, overlay is for toolchains' caches,
// and loop for the disk with the homes.
var modules = []string{
	"kernel/net/unix/unix_diag.ko", "kernel/fs/overlayfs/overlay.ko", "kernel/drivers/block/loop.ko",
}

// fetch gets a kernel, or finds it in the cache.
func (f *fetcher) fetch(ctx context.Context, k kernel) (got fetched, err error) {
	apt, err := f.apt(ctx, k)
	if err != nil {
		return got, err
	}
	names, err := apt(ctx, "apt-cache", "pkgnames", "linux-image-")
	if err != nil {
		return got, err
	}
	pattern, err := regexp.Compile("^" + k.pattern + "$")
	if err != nil {
		return got, err
	}
	var found []string
	for name := range strings.FieldsSeq(names) {
		if pattern.MatchString(name) {
			found = append(found, name)
		}
	}
	newestFirst(found)
	for _, name := range found[:min(len(found), candidates)] {
		// From 6.19 on the image itself is in linux-binary-*. linux-image-*
		// only depends on that and on linux-modules-*.
		packages := []string{
			strings.Replace(name, "linux-image-", "linux-modules-", 1),
			strings.Replace(name, "linux-image-", "linux-binary-", 1),
		}
		if _, err := apt(ctx, "apt-cache", "show", packages[1]); err != nil {
			packages = []string{name}
		}
		got.version = strings.TrimSuffix(strings.TrimPrefix(name, "linux-image-"), "-cloud-"+k.architecture().name)
		got.image = filepath.Join(f.cache, "images", name)
		got.modules = fmt.Sprintf("%s.modules-%08x", got.image, crc32.ChecksumIEEE([]byte(strings.Join(modules, " "))))
		if err = f.unpack(ctx, apt, packages, got); err == nil {
			return got, nil
		}
	}
	return got, fmt.Errorf("%w: %d packages match, none could be had: %w", errUnavailable, len(found), err)
}

// newestFirst sorts package names by their numbers.
func newestFirst(names []string) {
	number := regexp.MustCompile(`\d+`)
	slices.SortFunc(names, func(a, b string) int {
		as, bs := number.FindAllString(a, -1), number.FindAllString(b, -1)
		for i := range min(len(as), len(bs)) {
			if len(as[i]) != len(bs[i]) {
				return len(bs[i]) - len(as[i])
			}
			if as[i] != bs[i] {
				return strings.Compare(bs[i], as[i])
			}
		}
		return len(bs) - len(as)
	})
}

type aptCommand func(ctx context.Context, name string, args ...string) (string, error)

// apt prepares an apt for one suite, and fetches its index once.
func (f *fetcher) apt(ctx context.Context, k kernel) (aptCommand, error) {
	dir := filepath.Join(f.cache, "apt", k.suite+"-"+k.architecture().name)
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "parts"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	configuration := fmt.Sprintf(`#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
Dir::State %[1]q; Dir::State::status "%[1]s/status"; Dir::State::Lists "%[1]s/lists"; Dir::Cache "%[1]s/cache";
Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::Etc::sourceparts "%[1]s/parts";
Dir::Etc::preferencesparts "%[1]s/parts";
Acquire::Languages "none"; Acquire::PDiffs "false"; APT::Sandbox::User "root";
APT::Architecture %[2]q;
#clear APT::Architectures;
APT::Architectures:: %[2]q;
`, dir, k.architecture().name)
	for name, content := range map[string]string{
		"status": "", "sources.list": fmt.Sprintf("deb %s/%s %s main\n", f.mirror, k.archive, k.suite),
		"apt.conf": configuration,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	apt := func(ctx context.Context, name string, args ...string) (string, error) {
		command := exec.CommandContext(ctx, name, args...)
		command.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(dir, "apt.conf"), "LC_ALL=C")
		out, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), withStderr(err))
		}
		return string(out), nil
	}
	if indices, _ := filepath.Glob(filepath.Join(dir, "lists", "*Packages*")); len(indices) > 0 {
		return apt, nil
	}
	_, err := apt(ctx, "apt-get", "-qq", "update")
	return apt, err
}

// unpack downloads packages and keeps only the kernel's image and the modules.
func (f *fetcher) unpack(ctx context.Context, apt aptCommand, names []string, to fetched) error {
	_, imageErr := os.Stat(to.image)
	if _, err := os.Stat(to.modules); err == nil && imageErr == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(to.image), os.RemoveAll(to.modules),
		os.MkdirAll(to.modules, 0o755)); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(f.cache, "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	// "apt-get download" writes to the working directory.
	if _, err := apt(ctx, "env", append([]string{"-C", scratch, "apt-get", "-qq", "download"},
		names...)...); err != nil {
		return err
	}
	packages, _ := filepath.Glob(filepath.Join(scratch, "*.deb"))
	for _, file := range packages {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		f.bytes += info.Size()
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, scratch).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w: %s", file, err, out)
		}
	}
	for _, module := range modules {
		if err := keepModule(ctx, scratch, module, to.modules); err != nil {
			return err
		}
	}
	for _, place := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} {
		if images, _ := filepath.Glob(filepath.Join(scratch, place)); len(images) == 1 {
			return os.Rename(images[0], to.image) // the last step: if the image exists, all does
		}
	}
	return fmt.Errorf("unpack %s: there is no kernel in it", strings.Join(names, " "))
}

// keepModule moves a module of an unpacked package, if it exists, and
// uncompresses it, which not every kernel can.
func keepModule(ctx context.Context, unpacked, module, dir string) error {
	for _, place := range []string{"lib/modules/*", "usr/lib/modules/*"} {
		found, _ := filepath.Glob(filepath.Join(unpacked, place, module+"*"))
		for _, file := range found {
			to := filepath.Join(dir, filepath.Base(module))
			if !strings.HasSuffix(file, ".xz") {
				return os.Rename(file, to)
			}
			text, err := exec.CommandContext(ctx, "xz", "--decompress", "--stdout", file).Output()
			if err != nil {
				return fmt.Errorf("uncompress %s: %w", file, withStderr(err))
			}
			return os.WriteFile(to, text, 0o644)
		}
	}
	return nil
}

func withStderr(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	return err
}
