package service

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
)

// bundles are the files of certificates that programs read: those of Debian, Alpine,
// Fedora and openSUSE. Programs of a system know one of them.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/ssl/certs/ca-bundle.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/tls/cert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
	"/var/lib/ca-certificates/ca-bundle.pem",
}

// directories are those that OpenSSL looks into by the hash of a name.
var directories = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}

// javaStores are those of Java.
var javaStores = []string{
	"/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts", "/etc/pki/java/cacerts",
	"/var/lib/ca-certificates/java-cacerts",
}

// trust puts the session's certificate into copies of the machine's trust stores.
func (p *preparation) trust() error {
	bundle, err := p.write(p.made.Authority.Bundle(firstOf(bundles)))
	if err != nil {
		return err
	}
	directory, err := p.trustDirectories(bundle)
	if err != nil {
		return err
	}
	for _, path := range bundles {
		if within(directory, path) {
			continue
		}
		if target, err := filepath.EvalSymlinks(path); err == nil && !within(directory, target) {
			p.replace(target, bundle)
		}
	}
	for _, path := range javaStores {
		if err := p.trustJava(path, directory); err != nil {
			return err
		}
	}
	for _, name := range credentials.TrustVariables {
		p.given.Variables[name] = bundle
	}
	for _, name := range slices.Sorted(maps.Keys(p.order.Trusted)) {
		// The user's file holds what no other does.
		data, err := read(p.order.Trusted[name])
		if err != nil {
			continue // it is not there for the program either
		}
		if p.given.Variables[name], err = p.write(p.made.Authority.Bundle(data)); err != nil {
			return err
		}
	}
	return nil
}

func within(directory, path string) bool {
	return directory != "" && filepath.Dir(path) == directory
}

// replace puts a file in the place of a path, once.
func (p *preparation) replace(path, source string) {
	same := func(f credentials.File) bool { return f.Path == path }
	if !slices.ContainsFunc(p.given.Files, same) {
		p.given.Files = append(p.given.Files, credentials.File{Path: path, Source: source})
	}
}

// firstOf reads the first file that there is.
func firstOf(paths []string) []byte {
	const most = 16 << 20
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > most {
			continue
		}
		data, err := os.ReadFile(path)
		if err == nil {
			return data
		}
	}
	return nil // a machine without one trusts nobody
}

// trustDirectories makes a copy of the first directory that there is: its symlinks
// as they are, and ours beside them. It returns the directory.
func (p *preparation) trustDirectories(bundle string) (string, error) {
	for _, path := range directories {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		entries, err := os.ReadDir(target)
		if err != nil {
			continue
		}
		copied := filepath.Join(p.order.Dir, "certificates")
		if err := os.Mkdir(copied, 0o700); err != nil {
			return "", fmt.Errorf("copy a directory of certificates: %w", plain(err))
		}
		for _, entry := range entries {
			from, to := filepath.Join(target, entry.Name()), filepath.Join(copied, entry.Name())
			if err := copyEntry(from, to, target, bundle); err != nil {
				return "", fmt.Errorf("copy a directory of certificates: %w", plain(err))
			}
		}
		name, err := p.made.Authority.HashName()
		if err != nil {
			return "", err
		}
		// Another certificate of the same name would have that file,
		// and ours is new.
		if err := os.WriteFile(filepath.Join(copied, name), p.made.Authority.PEM(), 0o400); err != nil {
			return "", fmt.Errorf("copy a directory of certificates: %w", plain(err))
		}
		p.replace(target, copied)
		return target, nil
	}
	return "", nil
}

// copyEntry copies one entry of a directory. A bundle gets ours in its place.
func copyEntry(from, to, directory, bundle string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	for _, path := range bundles {
		if filepath.Base(path) == filepath.Base(from) && filepath.Dir(path) == directory {
			data, err := os.ReadFile(bundle)
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o400)
		}
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case info.IsDir():
		// Such as that of Java, which has a place of its own over it.
		return copyDirectory(from, to)
	case info.Mode().IsRegular():
		return copyFile(from, to)
	}
	return nil
}

func copyDirectory(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o400)
}

// trustJava makes a trust store of Java. One that cannot be read stays, and Java
// trusts no opened host.
func (p *preparation) trustJava(path, directory string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return nil
	}
	made, err := p.made.Authority.Java(data)
	if err != nil {
		return nil
	}
	if relative, err := filepath.Rel(directory, target); directory != "" && err == nil && filepath.IsLocal(relative) {
		inside := filepath.Join(p.order.Dir, "certificates", relative)
		if err := os.Remove(inside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy a trust store of Java: %w", plain(err))
		}
		return os.WriteFile(inside, made, 0o400)
	}
	source, err := p.write(made)
	if err != nil {
		return err
	}
	p.replace(target, source)
	return nil
}
