package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user the server runs as and its files belong to. The zero value is the user of this program.
// PostgreSQL refuses to run as root, so for root it is another one.
type owner struct {
	name     string
	uid, gid int
	switched bool
}

func (o owner) String() string {
	if o.switched {
		return o.name
	}
	return strconv.Itoa(os.Geteuid())
}

// serverOwner chooses whom the server runs as. As root that is whoever owns the data already (so that a user's own
// data stay theirs after a run with sudo), else postgres, else nobody.
func serverOwner(dataDir string) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	if info, err := os.Stat(dataDir); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return owner{name: strconv.Itoa(int(stat.Uid)), uid: int(stat.Uid), gid: int(stat.Gid), switched: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if uidErr == nil && gidErr == nil {
			return owner{name: name, uid: uid, gid: gid, switched: true}, nil
		}
	}
	return owner{}, errors.New("PostgreSQL can't run as root, and this machine has neither a user postgres nor nobody")
}

// command is exec.CommandContext as the owner, without any supplementary group.
func (o owner) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if o.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid), Groups: []uint32{}}
	}
	return cmd
}

// give makes the owner own a file or folder this program has made.
func (o owner) give(path string) error {
	if !o.switched {
		return nil
	}
	return os.Chown(path, o.uid, o.gid)
}

// reaches reports whether the owner can enter the folder. It tries, rather than reading permission bits: access
// lists and mount options decide too.
func (o owner) reaches(ctx context.Context, dir string) bool {
	if !o.switched {
		return true
	}
	// An ended context would look like a closed folder, and the answer is there in a millisecond.
	cmd := o.command(context.WithoutCancel(ctx), "/bin/sh", "-c", ":")
	cmd.Dir = dir
	return cmd.Run() == nil
}

// makeDirs makes a folder and its missing parents with 0755 whatever the umask.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// existingParent is the nearest folder on the way to dir that is there.
func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// errUnreachable is the reason for moving to another folder.
var errUnreachable = errors.New("folder is closed to the user the server runs as")

// prepareHome makes the folder of an embedded server, private to its owner.
func (o owner) prepareHome(ctx context.Context, dir string) error {
	if !o.reaches(ctx, existingParent(filepath.Dir(dir))) {
		return fmt.Errorf("%s: %w (%s)", dir, errUnreachable, o)
	}
	if err := makeDirs(dir); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	if o.switched {
		if err := o.give(dir); err != nil {
			return fmt.Errorf("give the data folder to user %s: %w", o, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the data folder %s to others (is it another user's?): %w", dir, err)
	}
	if !o.reaches(ctx, dir) {
		return fmt.Errorf("%s: %w (%s)", dir, errUnreachable, o)
	}
	return nil
}
