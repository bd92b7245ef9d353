// Package modeltest holds no product code. Its tests are state machines: random sequences of what people, workers, the
// network and the clock do, against the real services, a real PostgreSQL and the simulators of the other side. After every
// step the rules that never bend are checked.
//
//	go test ./internal/modeltest                        100 sequences of about 12 steps
//	go test ./internal/modeltest -rapid.checks=10000    10,000
//
// A failure prints the steps that led to it, made as few as possible, and the flag that repeats it.
package modeltest
