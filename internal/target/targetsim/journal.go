package targetsim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
)

// journal is the durable state: a file of JSON lines, only ever appended to. What append has returned from with durable
// set is on disk; a line that a crash tore in two was acknowledged to nobody and is cut off when the file is opened.
type journal struct {
	file *os.File // nil: nothing is kept
	err  error    // the first failure; after it nothing is written, because what is on disk is not known
}

// openJournal opens or makes the file and hands all its events to apply.
func openJournal(path string, apply func(event) error) (*journal, error) {
	if path == "" {
		return &journal{}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the simulator's state: %w", err)
	}
	whole, err := replay(file, apply)
	if err == nil {
		err = cutTo(file, whole)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the simulator's state in %s: %w", path, err), file.Close())
	}
	return &journal{file: file}, nil
}

// replay applies every whole line and gives the length of what they take up.
func replay(file io.Reader, apply func(event) error) (whole int64, err error) {
	r := bufio.NewReader(file)
	for line := 1; ; line++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil // text is the torn line, if anything
		}
		if err != nil {
			return whole, fmt.Errorf("line %d: %w", line, err)
		}
		var e event
		if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil {
			return whole, fmt.Errorf("line %d is not an event of the simulator: %w", line, err)
		}
		if err := apply(e); err != nil {
			return whole, fmt.Errorf("line %d: %w", line, err)
		}
		whole += int64(len(text))
	}
}

func cutTo(file *os.File, length int64) error {
	if err := file.Truncate(length); err != nil {
		return fmt.Errorf("cut off a torn line: %w", err)
	}
	if _, err := file.Seek(length, io.SeekStart); err != nil {
		return fmt.Errorf("go to the end: %w", err)
	}
	return nil
}

// append writes events in one go and, where durable, waits until they are on disk.
func (j *journal) append(durable bool, events ...event) error {
	if j.file == nil || j.err != nil {
		return j.err
	}
	j.err = j.write(durable, events)
	return j.err
}

func (j *journal) write(durable bool, events []event) error {
	var lines bytes.Buffer
	for _, e := range events {
		if err := json.MarshalWrite(&lines, e); err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		lines.WriteByte('\n')
	}
	if _, err := j.file.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if !durable {
		return nil
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("force the journal to disk: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return errors.Join(j.file.Sync(), j.file.Close())
}
